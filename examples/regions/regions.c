// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two processes without any MPI: rank 1 reads a buffer of rank 0.
 *
 *     cc -o regions regions.c $(pkg-config --cflags --libs onecopy) && ./regions
 */
#include <onecopy/onecopy.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char buf[1 << 20];

/* The owner declares its buffer and hands the name out, here through a pipe. */
static int lend(oc_node *node, int pipe)
{
	struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};
	oc_cookie cookie;
	int err;

	memset(buf, 'x', sizeof(buf));
	err = oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie);
	if (!err && write(pipe, &cookie, sizeof(cookie)) != sizeof(cookie))
		err = -1;
	return err;
}

/* Whoever knows the name reads; the owner takes no part. */
static int read_it(oc_node *node, int pipe)
{
	struct iovec iov = {.iov_base = buf, .iov_len = sizeof(buf)};
	oc_cookie cookie;
	ssize_t got;

	if (read(pipe, &cookie, sizeof(cookie)) != sizeof(cookie))
		return -1;
	got = oc_get(node, cookie, 0, &iov, 1);
	if (got < 0)
		return (int)got;
	printf("read %zd bytes, the last one is '%c'\n", got, buf[got - 1]);
	return 0;
}

static int run(uint32_t rank, const char *name, const int pipe[2])
{
	struct oc_node_attr attr = {.size = sizeof(attr), .name = name, .rank = rank, .nranks = 2};
	oc_node *node;
	int err = oc_node_join(&attr, &node);

	if (!err) {
		err = rank == 0 ? lend(node, pipe[1]) : read_it(node, pipe[0]);
		/* The buffer must stay as it is until the other one is done. */
		if (!err)
			err = oc_node_barrier(node);
		oc_node_leave(node);
	}
	if (err)
		fprintf(stderr, "rank %u: %s\n", rank, strerror(-err));
	return err ? 1 : 0;
}

int main(void)
{
	int ends[2], status;
	char name[32];
	pid_t child;

	snprintf(name, sizeof(name), "regions-%d", (int)getpid());
	if (pipe(ends))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0) {
		close(ends[1]);
		return run(1, name, ends);
	}
	close(ends[0]);
	status = run(0, name, ends);
	close(ends[1]); /* ends a child that waits for what never comes */
	if (waitpid(child, &ends[0], 0) < 0 || !WIFEXITED(ends[0]) || WEXITSTATUS(ends[0]))
		status = 1;
	return status;
}
