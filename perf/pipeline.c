/* SPDX-License-Identifier: MIT */
/*
 * pipeline: a parallel block compressor on a real file, over vez and over pthread conditions.
 *
 * A reader fills blocks, N workers compress them, each to a member of its own of a gzip file, and a writer writes
 * them in the order of the input. Blocks lie in a ring of 2 N slots. Who waits for what:
 *	reader   a slot to be written out, so that it can be filled anew
 *	worker   a block to be read
 *	writer   the very next block to be compressed: the one who finishes another has nothing for it
 * These guards, and the bodies that change the state, are written once; perf/lib/stage.h has the ways to carry them
 * out. An operation is a block.
 *
 * The output is checked with gzip -t, and compared with the input. Seen to fail: a condition waited for with "if"
 * instead of "while" cuts the output short; a writer that takes a neighbouring slot writes what gzip refuses.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "perf.h"
#include "stage.h"

static const struct stage_impl *const impls[] = {
	&stage_vez, &stage_cond_broadcast, &stage_cond_kinds, &stage_cond_signal
};

static struct perf_option options[] = {
	{ "impl", "vez", "vez, cond-broadcast, cond-kinds, cond-signal" },
	{ "waiters", "8", "workers" },
	{ "file", "", "what to compress; default: the C compiler's cc1" },
	{ "block-kib", "64", "KiB in a block" },
	{ "most-mib", "0", "how much of the file to read; 0: all" },
	{ "level", "1", "of compression, 1 to 9" },
	{ "cpu", "any", "the processor to run on, or any" },
	{ NULL, NULL, NULL },
};

enum kind { READER, WORKER, WRITER, ALL };

struct slot {
	unsigned char *in;
	unsigned char *out;
	size_t in_size;
	size_t out_size;
	bool done;
};

struct pipeline {
	const struct stage_impl *impl;
	void *stage;
	unsigned workers;
	unsigned slots;
	size_t block;
	uint64_t most;
	int level;
	int in;
	int out;

	/* The state: blocks are read, taken by workers and written in this order, so read >= taken >= written. */
	struct slot *ring;
	uint64_t read;
	uint64_t taken;
	uint64_t written;
	bool ended;
};

static struct slot *slot_of(struct pipeline *p, uint64_t number)
{
	return &p->ring[number % p->slots];
}

static void nothing(void *arg)
{
	(void)arg;
}

/* ---- reader ---- */

static bool slot_is_free(void *arg)
{
	struct pipeline *p = arg;
	return p->read - p->written < p->slots;
}

static void count_read(void *arg)
{
	((struct pipeline *)arg)->read++;
}

static void end_reading(void *arg)
{
	((struct pipeline *)arg)->ended = true;
}

/* A whole block, but at the end. */
static size_t read_block(struct pipeline *p, unsigned char *to)
{
	size_t got = 0;
	size_t want = p->most < p->block ? (size_t)p->most : p->block;
	while (got < want) {
		ssize_t n = read(p->in, to + got, want - got);
		if (n < 0)
			perf_fail("cannot read the input");
		if (n == 0)
			break;
		got += (size_t)n;
	}
	p->most -= got;
	return got;
}

static void read_all(struct pipeline *p)
{
	for (uint64_t number = 0;; number++) {
		struct slot *s = slot_of(p, number);
		p->impl->await(p->stage, READER, slot_is_free, nothing, p);
		s->in_size = read_block(p, s->in);
		if (s->in_size == 0)
			break;
		p->impl->change(p->stage, WORKER, count_read, p);
	}
	p->impl->change(p->stage, ALL, end_reading, p);
}

/* ---- workers ---- */

struct job {
	struct pipeline *pipeline;
	struct slot *slot;
};

static bool block_or_end(void *arg)
{
	struct job *job = arg;
	return job->pipeline->taken < job->pipeline->read || job->pipeline->ended;
}

static void take_block(void *arg)
{
	struct job *job = arg;
	struct pipeline *p = job->pipeline;
	job->slot = p->taken < p->read ? slot_of(p, p->taken++) : NULL;
}

static void finish_block(void *arg)
{
	((struct job *)arg)->slot->done = true;
}

static void compress_block(z_stream *z, struct slot *s, size_t room)
{
	z->next_in = s->in;
	z->avail_in = (uInt)s->in_size;
	z->next_out = s->out;
	z->avail_out = (uInt)room;
	if (deflate(z, Z_FINISH) != Z_STREAM_END || deflateReset(z) != Z_OK)
		perf_fail("cannot compress");
	s->out_size = room - z->avail_out;
}

static size_t out_room(size_t block)
{
	return block + block / 8 + 1024;
}

static void *work(void *arg)
{
	struct job job = { arg, NULL };
	struct pipeline *p = job.pipeline;
	z_stream z;
	memset(&z, 0, sizeof z);
	if (deflateInit2(&z, p->level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		perf_fail("cannot begin to compress");
	for (;;) {
		p->impl->await(p->stage, WORKER, block_or_end, take_block, &job);
		if (!job.slot)
			break;
		compress_block(&z, job.slot, out_room(p->block));
		p->impl->change(p->stage, WRITER, finish_block, &job);
	}
	deflateEnd(&z);
	return NULL;
}

/* ---- writer ---- */

static bool next_or_end(void *arg)
{
	struct pipeline *p = arg;
	return slot_of(p, p->written)->done || (p->ended && p->written == p->read);
}

static void count_written(void *arg)
{
	struct pipeline *p = arg;
	slot_of(p, p->written)->done = false;
	p->written++;
}

static void write_block(int out, const unsigned char *from, size_t size)
{
	while (size > 0) {
		ssize_t n = write(out, from, size);
		if (n <= 0)
			perf_fail("cannot write the output");
		from += n;
		size -= (size_t)n;
	}
}

static void *write_all(void *arg)
{
	struct pipeline *p = arg;
	for (;;) {
		p->impl->await(p->stage, WRITER, next_or_end, nothing, p);
		/* Only this thread changes what is looked at here: done is set for this block, or never will be. */
		struct slot *s = slot_of(p, p->written);
		if (!s->done)
			return NULL;
		write_block(p->out, s->out, s->out_size);
		p->impl->change(p->stage, READER, count_written, p);
	}
}

/* ---- the program ---- */

static void open_input(struct pipeline *p, char *path, size_t size)
{
	const char *given = perf_option(options, "file");
	snprintf(path, size, "%s", given);
	if (!*given) {
		FILE *ask = popen("gcc -print-prog-name=cc1", "r");
		if (!ask || !fgets(path, (int)size, ask) || pclose(ask) != 0)
			perf_fail("no gcc to ask for its cc1: give a --file");
		path[strcspn(path, "\n")] = '\0';
	}
	p->in = open(path, O_RDONLY);
	if (p->in < 0)
		perf_fail("cannot read %s", path);
}

static void make_ring(struct pipeline *p)
{
	p->ring = calloc(p->slots, sizeof *p->ring);
	for (unsigned i = 0; p->ring && i < p->slots; i++) {
		p->ring[i].in = malloc(p->block);
		p->ring[i].out = malloc(out_room(p->block));
		if (!p->ring[i].in || !p->ring[i].out)
			perf_fail("no memory");
	}
}

static void free_ring(struct pipeline *p)
{
	for (unsigned i = 0; i < p->slots; i++) {
		free(p->ring[i].in);
		free(p->ring[i].out);
	}
	free(p->ring);
}

static void run(struct pipeline *p, struct perf_region *region)
{
	pthread_t *threads = calloc(p->workers + 1, sizeof *threads);
	if (!threads)
		perf_fail("no memory");
	for (unsigned i = 0; i < p->workers; i++)
		threads[i] = perf_thread(work, p);
	threads[p->workers] = perf_thread(write_all, p);
	perf_begin(region);
	read_all(p);
	pthread_join(threads[p->workers], NULL);
	perf_end(region);
	for (unsigned i = 0; i < p->workers; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

/* The output, unpacked, is the input: every byte of it, and nothing more. */
static void compare(const struct pipeline *p, const char *output, uint64_t size)
{
	static unsigned char was[65536], is[65536];
	gzFile z = gzopen(output, "rb");
	uint64_t compared = 0;
	for (;;) {
		int n = gzread(z, is, sizeof is);
		if (n == 0)
			break;
		if (n < 0 || pread(p->in, was, (size_t)n, (off_t)compared) != n || memcmp(was, is, (size_t)n) != 0)
			perf_fail("%s: the output differs from the input", p->impl->name);
		compared += (uint64_t)n;
	}
	gzclose(z);
	if (compared != size)
		perf_fail("%s: %llu bytes came out of %llu", p->impl->name, (unsigned long long)compared,
			  (unsigned long long)size);
}

static void verify(const struct pipeline *p, const char *output)
{
	char command[512];
	uint64_t size = (uint64_t)lseek(p->in, 0, SEEK_CUR);
	snprintf(command, sizeof command, "gzip -t < '%s'", output);
	if (system(command) != 0)
		perf_fail("%s: gzip -t refuses the output", p->impl->name);
	compare(p, output, size);
}

static void choose(struct pipeline *p, const char *name)
{
	for (size_t i = 0; i < sizeof impls / sizeof *impls; i++)
		if (strcmp(impls[i]->name, name) == 0)
			p->impl = impls[i];
	if (!p->impl)
		perf_fail("no --impl=%s", name);
}

static void configure(struct pipeline *p)
{
	uint64_t most = perf_number(options, "most-mib");
	memset(p, 0, sizeof *p);
	choose(p, perf_option(options, "impl"));
	p->workers = (unsigned)perf_number(options, "waiters");
	p->slots = 2 * p->workers;
	p->block = (size_t)perf_number(options, "block-kib") * 1024;
	p->most = most ? most << 20 : UINT64_MAX;
	p->level = (int)perf_number(options, "level");
	if (p->workers < 1 || p->workers > 256 || p->block < 1 || p->block > 64 << 20)
		perf_fail("--waiters is 1 to 256, --block-kib 1 to 65536");
	make_ring(p);
	p->stage = p->impl->create();
}

int main(int argc, char **argv)
{
	struct pipeline p;
	struct perf_region region;
	char input[4096], output[256], extra[4300];
	const char *dir = getenv("TMPDIR");
	perf_options(argc, argv, "a parallel block compressor", options, sizeof options / sizeof *options);
	perf_pin(perf_option(options, "cpu"));
	configure(&p);
	open_input(&p, input, sizeof input);
	snprintf(output, sizeof output, "%s/perf-pipeline-XXXXXX", dir ? dir : "/tmp");
	p.out = mkstemp(output);
	if (p.out < 0)
		perf_fail("cannot write %s", output);
	run(&p, &region);
	verify(&p, output);
	unlink(output);
	p.impl->destroy(p.stage);
	free_ring(&p);
	snprintf(extra, sizeof extra, "\"file\": \"%s\", \"block\": %zu", input, p.block);
	perf_print(&(struct perf_result){ "pipeline", p.impl->name, "blocks", p.workers, perf_option(options, "cpu"),
					  p.written, extra },
		   &region);
	return 0;
}
