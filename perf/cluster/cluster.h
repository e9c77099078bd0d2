/* SPDX-License-Identifier: MIT */
/* What the parts of this program share. */
#ifndef PERF_CLUSTER_H
#define PERF_CLUSTER_H

#define THREADED
#include <stdint.h>
#include <vez.h>
#include <vez/cluster.h>
#include <zookeeper/zookeeper.h>

#define MOST 64
#define SESSION_MS 60000
#define SOON vez_after_ms(50000)

extern const char *servers;
extern unsigned waiters;
extern char base[64]; /* a node for whatever this run needs; the rest of it is a name that nobody else has */

void must(int rc, const char *what);
zhandle_t *raw_open(void);

/* What the servers have counted, of all that have a session, when nothing happens any more. */
struct counts {
	long long received, sent;
};

struct counts look_when_quiet(void);

int by_size(const void *a, const void *b);

/* --mode=calls, table, pair; false: there is no such implementation. */
bool calls(const char *mode, const char *impl, uint64_t ops, const char *cpu);

#endif
