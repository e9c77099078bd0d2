/* SPDX-License-Identifier: MIT */
/*
 * Processes, on any machines, that share one counter: each adds one to a number in a file, so many times, under a mutex
 * of all machines. The file stands for whatever they share; with it is kept the fence of who wrote last, so that one
 * that was stopped while it held, and goes on when another holds, is refused.
 *
 *   counter SERVERS FILE TIMES     make cluster-demo runs two at a server of its own
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vez.h>
#include <vez/cluster.h>

/* Adds one, unless somebody with a later fence was here. A real resource does this where it keeps its data. */
static int add_one(const char *file, unsigned long long fence)
{
	unsigned long long number = 0, last = 0;
	FILE *f = fopen(file, "r");
	if (f) {
		if (fscanf(f, "%llu %llu", &number, &last) != 2)
			number = last = 0;
		fclose(f);
	}
	if (fence < last)
		return EPERM;
	f = fopen(file, "w");
	if (!f)
		return EIO;
	fprintf(f, "%llu %llu\n", number + 1, fence);
	printf("%d: %llu -> %llu, with fence %llu\n", (int)getpid(), number, number + 1, fence);
	return fclose(f) == 0 ? 0 : EIO;
}

/* One turn: nobody waits longer than half a minute, and nobody holds for ever. */
static int turn(vez_cluster_mutex_t *m, const char *file)
{
	vez_cluster_hold_t hold;
	int rc = vez_cluster_mutex_lock(m, &hold, vez_after_ms(30000), NULL);
	if (rc != 0)
		return rc;
	rc = add_one(file, vez_cluster_hold_fence(&hold));
	int lost = vez_cluster_release(&hold);
	return rc != 0 ? rc : lost;
}

int main(int argc, char **argv)
{
	vez_cluster_t *c;
	vez_cluster_mutex_t *m;
	if (argc != 4) {
		fprintf(stderr, "usage: counter SERVERS FILE TIMES\n");
		return 2;
	}
	vez_cluster_options_t options = { .servers = argv[1], .session_ms = 10000 };
	int rc = vez_cluster_open(&c, &options, vez_after_ms(10000), NULL);
	if (rc == 0) {
		rc = vez_cluster_mutex_open(&m, c, "counter", vez_after_ms(10000), NULL);
		for (int i = 0; rc == 0 && i < atoi(argv[3]); i++)
			rc = turn(m, argv[2]);
		vez_cluster_close(c);
		/* Objects may be closed after their session. */
		if (rc == 0)
			rc = vez_cluster_mutex_close(m);
	}
	if (rc != 0)
		fprintf(stderr, "counter: %s\n", rc == VEZ_ELOST ? "the session is lost" : strerror(rc));
	return rc != 0;
}
