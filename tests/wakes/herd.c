/* SPDX-License-Identifier: MIT */
/*
 * herd SIZE ROUNDS [HOW]: a herd, and then the end of the process, or the beginning of another, in several ways.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "herd.h"

static int wait_for_child(pid_t pid)
{
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* A child has a herd of 3 and 20 rounds. */
static int fork_with(int how)
{
	pid_t pid = how == 'f' ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(herd_run(3, 20));
	return wait_for_child(pid);
}

/* The first call in a child, which has no table yet. */
static int keeps_errno(void)
{
	static pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;
	pid_t pid = fork();
	if (pid == 0) {
		errno = 1234;
		pthread_cond_signal(&nobody);
		_exit(errno != 1234);
	}
	return wait_for_child(pid);
}

static int plugin(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*run)(int, int);
	if (!library)
		return 1;
	*(void **)&run = dlsym(library, "plugin_run");
	int rc = run ? run(4, 25) : 1;
	dlclose(library);
	return rc;
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[3] : "";
	if (argc < 3 || herd_run(atoi(argv[1]), atoi(argv[2])) != 0)
		return 1;
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "fork"))
		return fork_with('f');
	if (!strcmp(how, "clone"))
		return fork_with('c');
	if (!strcmp(how, "errno"))
		return keeps_errno();
	if (!strcmp(how, "exec"))
		execl("/proc/self/exe", argv[0], "3", "20", NULL);
	if (!strcmp(how, "closefrom")) {
		close_range(3, ~0u, 0);
		return herd_run(3, 20);
	}
	return strchr(how, '/') ? plugin(how) : 0;
}
