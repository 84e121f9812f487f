// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "abi.h"

static int ask_pmix(struct oc_launcher *said)
{
	const char *space = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");
	const char *server = getenv("PMIX_SERVER_URI2");

	if (!space || !rank)
		return -ENOENT;
	/* A name of a job may come again in another one's; its server's address, one a node, does
	 * not. */
	said->job = space;
	said->here = server ? server : "";
	said->rank = strtol(rank, NULL, 10);
	return 0;
}

/* The server made the pair of sockets of which this process has one: the kernel knows it as the
 * other end, whoever is between the two. */
static int ask_pmi(struct oc_launcher *said)
{
	const char *fd = getenv("PMI_FD"), *rank = getenv("PMI_RANK");
	struct ucred server = {0};
	socklen_t len = sizeof(server);
	struct stat ns;

	if (!fd || !rank)
		return -ENOENT;
	/*
	 * Ranks that cannot say must not take the way of those whose launcher says nothing: they
	 * would wait there for the others. Nor can those say that others have spawned: the server
	 * of MPICH 5 is that of the job which did it, and of all that it does.
	 */
	if (getenv("PMI_SPAWNED") || getsockopt(atoi(fd), SOL_SOCKET, SO_PEERCRED, &server, &len) ||
	    server.pid <= 0 || stat("/proc/self/ns/pid", &ns))
		return -ESRCH;
	snprintf(said->text, sizeof(said->text), "%llu.%d", (unsigned long long)ns.st_ino,
		 (int)server.pid);
	said->job = NULL;
	said->here = said->text;
	said->rank = strtol(rank, NULL, 10);
	return 0;
}

/* Where one launcher was started by another's job, both are in the environment. */
int oc_launcher_ask(struct oc_launcher *said)
{
	int err = oc_abi_pmi_first ? ask_pmi(said) : ask_pmix(said);

	if (err == -ENOENT && oc_abi_pmi_first)
		err = ask_pmix(said);
	return err;
}
