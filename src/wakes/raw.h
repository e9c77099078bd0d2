/* SPDX-License-Identifier: MIT */
/*
 * System calls that are no cancellation points, set no errno and call nothing of the program's.
 */
#ifndef WAKES_RAW_H
#define WAKES_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline int raw_open(const char *path, int flags, int mode)
{
	int kept = errno;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
	errno = kept;
	return fd;
}

static inline void raw_close(int fd)
{
	int kept = errno;
	syscall(SYS_close, fd);
	errno = kept;
}

static inline long raw_read(int fd, void *buffer, size_t size)
{
	int kept = errno;
	long got;
	do
		got = syscall(SYS_read, fd, buffer, size);
	while (got < 0 && errno == EINTR);
	errno = kept;
	return got;
}

static inline uint64_t raw_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
