/* SPDX-License-Identifier: MIT */
/*
 * cluster-serve [-m] [-3] COMMAND [ARGUMENT...]: runs a command while a ZooKeeper server of its own, or three that are
 * one service, serve on loopback; -m: with the options and the priority that servers usually have, to be measured. The
 * command finds them in VEZ_CLUSTER_SERVERS, and the root /vez there. The exit status is the command's; nothing of the
 * servers is left.
 */
#include "lab.h"

#include <sys/prctl.h>

struct job {
	bool three;
	char **command;
};

static int serve(void *arg)
{
	const struct job *job = arg;
	char servers[100];
	if (job->three)
		ensemble_start();
	else
		server_start();
	snprintf(servers, sizeof servers, "127.0.0.1:%d", server_port);
	vez_cluster_options_t options = { job->three ? ensemble_servers() : servers, "/vez", NULL, 5000 };
	CHECK_EQ(vez_cluster_make_root(&options, SOON, NULL), 0);
	setenv("VEZ_CLUSTER_SERVERS", options.servers, 1);
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		execvp(job->command[0], job->command);
		perror(job->command[0]);
		_exit(127);
	}
	return end_of(child) % 256;
}

int main(int argc, char **argv)
{
	struct job job = { false, argv + 1 };
	server_is_measured = argc > 1 && strcmp(job.command[0], "-m") == 0;
	job.command += server_is_measured;
	job.three = job.command[0] && strcmp(job.command[0], "-3") == 0;
	job.command += job.three;
	if (!job.command[0]) {
		fprintf(stderr, "usage: cluster-serve [-m] [-3] COMMAND [ARGUMENT...]\n");
		return 2;
	}
	return guarded(serve, &job);
}
