// SPDX-License-Identifier: BSD-3-Clause
/* What launchers say of a job, and which of two is believed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi.h"
#include "launcher.h"

const bool oc_abi_pmi_first = PMI_FIRST;

static int failed;

static void expect(int wanted, const char *what)
{
	int got;

	struct oc_launcher said = {0};

	got = oc_launcher_ask(&said);
	if (got == wanted)
		return;
	fprintf(stderr, "%s: %d, not %d\n", what, got, wanted);
	failed = 1;
}

static void expect_rank(long rank, bool named, const char *what)
{
	struct oc_launcher said = {0};

	if (!oc_launcher_ask(&said) && said.rank == rank && !said.job == !named && said.here[0])
		return;
	fprintf(stderr, "%s: rank %ld of %s\n", what, said.rank, said.job ? said.job : "no job");
	failed = 1;
}

int main(void)
{
	char number[16];
	int pair[2];

	unsetenv("PMIX_NAMESPACE");
	unsetenv("PMIX_RANK");
	unsetenv("PMI_FD");
	unsetenv("PMI_RANK");
	unsetenv("PMI_SPAWNED");
	expect(-ENOENT, "no launcher");

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 1;
	snprintf(number, sizeof(number), "%d", pair[0]);
	setenv("PMI_RANK", "3", 1);
	expect(-ENOENT, "no server");
	setenv("PMI_FD", number, 1);
	if (PMI_FIRST)
		expect_rank(3, false, "PMI");
	else
		expect(-ENOENT, "PMI where the MPI does not ask it");

	setenv("PMI_SPAWNED", "1", 1);
	if (PMI_FIRST)
		expect(-ESRCH, "a job among several of one server");
	unsetenv("PMI_SPAWNED");

	setenv("PMIX_NAMESPACE", "job", 1);
	setenv("PMIX_RANK", "5", 1);
	setenv("PMIX_SERVER_URI2", "here", 1);
	expect_rank(PMI_FIRST ? 3 : 5, !PMI_FIRST, "both");
	close(pair[0]);
	if (PMI_FIRST)
		expect(-ESRCH, "a server that is not to be seen");
	unsetenv("PMI_FD");
	expect_rank(5, true, "PMIx");
	return failed;
}
