/* SPDX-License-Identifier: MIT */
/*
 * A proxy in front of the server, in a process of its own. It reads the frames that pass (length, then transaction
 * number and type; answers begin with the same number) and breaks the connection at the one it was told. It may keep
 * that one, and let the server have it when the client has long gone elsewhere.
 */
#include "lab.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define MOST 128
#define BUFFER (1 << 20)
/* The servers' word for it. */
#define SESSION_MOVED (-118)

struct way {
	int from, to;
	bool to_server;
	bool greeted;
	size_t got;
	unsigned char *buffer;
};

struct link {
	struct way way[2];
	bool open;
	bool drops;
	uint32_t dropped;
	/* What is kept; the client's end is closed. */
	unsigned char *late;
	size_t late_size;
};

static struct link links[MOST];

static uint32_t number_at(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void shut_link(struct link *l)
{
	if (l->way[0].from >= 0)
		close(l->way[0].from);
	close(l->way[0].to);
	free(l->way[0].buffer);
	free(l->way[1].buffer);
	free(l->late);
	memset(l, 0, sizeof *l);
}

static void keep(struct link *l, const unsigned char *frame)
{
	l->late_size = 4 + (size_t)number_at(frame);
	l->late = malloc(l->late_size);
	memcpy(l->late, frame, l->late_size);
	close(l->way[0].from);
	l->way[0].from = -1;
}

/* The server gets what was kept. Whether it refuses: it says so, or closes the connection. */
static bool refuses(struct link *l)
{
	unsigned char answers[4096];
	size_t got = 0, at = 0;
	if (write(l->way[0].to, l->late, l->late_size) != (ssize_t)l->late_size)
		return true;
	for (;;) {
		ssize_t n = read(l->way[1].from, answers + got, sizeof answers - got);
		if (n <= 0)
			return true;
		got += (size_t)n;
		for (; got - at >= 20 && got - at >= 4 + (size_t)number_at(answers + at);
		     at += 4 + (size_t)number_at(answers + at))
			if (number_at(answers + at + 4) == number_at(l->late + 4))
				return (int)number_at(answers + at + 16) == SESSION_MOVED;
	}
}

static void deliver(struct proxy *p, struct link *l)
{
	p->refused += refuses(l);
	p->shut |= p->last;
	p->delivered++;
	shut_link(l);
}

/* Whether this frame goes on. False: the link has been cut. */
static bool passes(struct proxy *p, struct link *l, struct way *w, const unsigned char *frame)
{
	if (!w->greeted) {
		w->greeted = true;
		if (!w->to_server) {
			p->session = (int64_t)((uint64_t)number_at(frame + 12) << 32 | number_at(frame + 16));
			memcpy(p->password, frame + 24, sizeof p->password);
		}
		return true;
	}
	if (!w->to_server) {
		if (!l->drops || number_at(frame + 4) != l->dropped)
			return true;
	} else {
		if (p->cuts == 0 || p->cut == CUT_NEVER || (int)number_at(frame + 8) != p->type)
			return true;
		p->cuts--;
		if (p->cut == CUT_AFTER) {
			l->drops = true;
			l->dropped = number_at(frame + 4);
			return true;
		}
		if (p->cut == CUT_LATE) {
			keep(l, frame);
			p->done++;
			return false;
		}
	}
	p->done++;
	shut_link(l);
	return false;
}

static bool write_all(int fd, const unsigned char *at, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, at, size);
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static void forward(struct proxy *p, struct link *l, struct way *w)
{
	ssize_t n = read(w->from, w->buffer + w->got, BUFFER - w->got);
	if (n <= 0) {
		shut_link(l);
		return;
	}
	w->got += (size_t)n;
	while (w->got >= 4 && w->got >= 4 + (size_t)number_at(w->buffer)) {
		size_t size = 4 + (size_t)number_at(w->buffer);
		if (!passes(p, l, w, w->buffer))
			return;
		if (!write_all(w->to, w->buffer, size)) {
			shut_link(l);
			return;
		}
		w->got -= size;
		memmove(w->buffer, w->buffer + size, w->got);
	}
}

static void new_link(const struct proxy *p, int listener)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)(p->target ? p->target : server_port)) };
	int client = accept(listener, NULL, NULL);
	int server = socket(AF_INET, SOCK_STREAM, 0);
	struct link *l = links;
	while (l < links + MOST && l->open)
		l++;
	if (l == links + MOST || connect(server, (struct sockaddr *)&at, sizeof at) != 0) {
		close(client);
		close(server);
		return;
	}
	l->open = true;
	l->way[0] = (struct way){ client, server, true, false, 0, malloc(BUFFER) };
	l->way[1] = (struct way){ server, client, false, false, 0, malloc(BUFFER) };
}

static void serve(struct proxy *p, int listener)
{
	struct pollfd fds[2 * MOST + 1];
	for (;;) {
		for (int i = 0; i < MOST; i++) {
			if (links[i].open && p->shut)
				shut_link(&links[i]);
			if (links[i].late && p->deliver)
				deliver(p, &links[i]);
			/* Of one that keeps something nothing else is heard. */
			bool heard = links[i].open && !links[i].late;
			for (int j = 0; j < 2; j++)
				fds[2 * i + j] = (struct pollfd){ heard ? links[i].way[j].from : -1, POLLIN, 0 };
		}
		fds[2 * MOST] = (struct pollfd){ p->shut ? -1 : listener, POLLIN, 0 };
		poll(fds, 2 * MOST + 1, 1);
		for (int i = 0; i < 2 * MOST; i++)
			if (fds[i].revents && links[i / 2].open && links[i / 2].way[i % 2].from == fds[i].fd)
				forward(p, &links[i / 2], &links[i / 2].way[i % 2]);
		if (fds[2 * MOST].revents)
			new_link(p, listener);
	}
}

struct proxy *proxy_start(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	struct proxy *p = shared(sizeof *p);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 64) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
	p->port = ntohs(at.sin_port);
	p->pid = fork();
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		alarm(0);
		serve(p, listener);
	}
	close(listener);
	return p;
}
