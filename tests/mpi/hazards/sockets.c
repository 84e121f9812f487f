// SPDX-License-Identifier: BSD-3-Clause
/*
 * sockets RANK WHAT [nameless]: one rank runs out of descriptors, or the like, as the ranks of the
 * machine look for each other in MPI_Init. Each hears of it, none waits for it, and what
 * communicators carry afterwards is right. Nameless: no launcher has told the library what the
 * job is called.
 *
 * The calls of the library are told from those of the MPI by their arguments.
 */
#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rank.h"

#define OURS (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

static const char *what = "";
static bool nameless;
static int sockets, creds;

/* The library asks first, the MPI later. */
char *getenv(const char *name)
{
	size_t len = strlen(name);

	if (nameless && (!strcmp(name, "PMIX_NAMESPACE") || !strcmp(name, "PMI_FD"))) {
		nameless = false;
		return NULL;
	}
	for (char **at = environ; at && *at; at++)
		if (!strncmp(*at, name, len) && (*at)[len] == '=')
			return *at + len + 1;
	return NULL;
}

int socket(int domain, int type, int protocol)
{
	if (domain == AF_UNIX && type == OURS) {
		sockets++;
		if ((sockets == 1 && !strcmp(what, "announce")) ||
		    (sockets == 2 && !strcmp(what, "look"))) {
			errno = EMFILE;
			return -1;
		}
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	if (flags == (OURS & ~SOCK_STREAM) && !strcmp(what, "accept")) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_accept4, fd, addr, len, flags);
}

/* Of the first rank that was found, then of the same one at the start of the join. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (sockets > 1 && level == SOL_SOCKET && name == SO_PEERCRED && ++creds == 3 &&
	    !strcmp(what, "join")) {
		errno = ENOBUFS;
		return -1;
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
}

int main(int argc, char **argv)
{
	int rank, data[4096];

	nameless = argc == 4;
	if (argc > 2 && !strcmp(argv[1], rank_said()))
		what = argv[2];
	if (!strcmp(what, "late"))
		sleep(1);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int turn = 0; turn < 20; turn++) {
		for (int i = 0; i < 4096; i++)
			data[i] = rank ? 0 : turn + i;
		MPI_Bcast(data, 4096, MPI_INT, 0, MPI_COMM_WORLD);
		for (int i = 0; i < 4096; i++)
			if (data[i] != turn + i)
				MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Finalize();
	return 0;
}
