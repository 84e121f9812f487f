// SPDX-License-Identifier: BSD-3-Clause
#include "node/bootstrap.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/env.h"
#include "base/file.h"

#define OC_HELLO_MAGIC 0x6f6e6531u
#define OC_HELLO_ABI   1u

/* A stranger that connects and says nothing may hold up the others so long. */
#define OC_HELLO_MS 5000

/* Rank 0 shall be the first to give up: it tells the others why. */
#define OC_GRACE_MS 1000

struct oc_hello {
	uint32_t magic;
	uint32_t abi;
	uint32_t rank;
	uint32_t nranks;
	uint64_t arena_size;
};

struct oc_vote {
	int32_t status;
	uint32_t flags;
};

static void restart_clock(struct oc_bootstrap *boot)
{
	boot->wire.deadline = oc_wire_now() + boot->timeout_ms + (boot->rank ? OC_GRACE_MS : 0);
}

static int dial(struct oc_bootstrap *boot, const char *name)
{
	struct sockaddr_un addr;
	socklen_t len = oc_address_make(&addr, name);
	long nap = 1;
	int err;

	boot->wire.fds[0] =
		oc_file_above(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (boot->wire.fds[0] < 0)
		return -errno;
	for (;;) {
		if (!connect(boot->wire.fds[0], (struct sockaddr *)&addr, len))
			return 0;
		err = errno;
		/* Nobody there yet, or a full backlog. */
		if (err != ECONNREFUSED && err != EAGAIN && err != EINTR)
			return -err;
		if (oc_wire_now() >= boot->wire.deadline)
			return -ETIMEDOUT;
		oc_wire_nap(nap);
		nap = nap < 16 ? nap * 2 : nap;
	}
}

/* Rank 0: who is at the other end of @fd? */
static int hear_hello(struct oc_bootstrap *boot, int fd, int64_t deadline, uint32_t *rank,
		      struct oc_arrival *who)
{
	struct oc_hello hello;
	size_t nfds = 1;
	int err;

	who->arena_fd = -1;
	err = oc_wire_recv(&boot->wire, fd, &hello, sizeof(hello), &who->arena_fd, &nfds, deadline);
	if (err)
		return err;
	if (!nfds)
		who->arena_fd = -1;
	who->arena_size = nfds ? hello.arena_size : 0;
	*rank = hello.rank;
	if (hello.magic == OC_HELLO_MAGIC && hello.abi == OC_HELLO_ABI &&
	    hello.nranks == boot->nranks && hello.rank > 0 && hello.rank < boot->nranks)
		return 0;
	if (nfds)
		close(who->arena_fd);
	who->arena_fd = -1;
	return hello.magic == OC_HELLO_MAGIC ? -EINVAL : -EPROTO;
}

/* Accepts one connection. 0 also when it was a stranger's, who is sent away
 * and must not spoil the join of the others; *@refused then says why. */
static int accept_one(struct oc_bootstrap *boot, int listener, struct oc_arrival *all,
		      uint32_t *arrived, int *refused)
{
	struct oc_arrival who = {.arena_fd = -1};
	struct oc_vote verdict = {0};
	int64_t deadline;
	uint32_t rank;
	int fd, err;

	err = oc_wire_wait(&boot->wire, listener, POLLIN, boot->wire.deadline);
	if (err)
		return err;
	fd = oc_file_above(accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
	err = oc_address_check_peer(fd);
	if (err)
		goto send_away;
	deadline = oc_wire_now() + OC_HELLO_MS;
	err = hear_hello(boot, fd, deadline < boot->wire.deadline ? deadline : boot->wire.deadline,
			 &rank, &who);
	if (!err && boot->wire.fds[rank] >= 0)
		err = -EINVAL;
	if (err)
		goto send_away;
	boot->wire.fds[rank] = fd;
	all[rank] = who;
	(*arrived)++;
	return 0;

send_away:
	*refused = err;
	verdict.status = err;
	if (send(fd, &verdict, sizeof(verdict), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		oc_note("bootstrap: a stranger left before it was sent away");
	if (who.arena_fd >= 0)
		close(who.arena_fd);
	close(fd);
	return 0;
}

static int gather_by_name(struct oc_bootstrap *boot, const char *name, struct oc_arrival *all)
{
	struct sockaddr_un addr;
	socklen_t len = oc_address_make(&addr, name);
	uint32_t arrived = 1;
	int listener, err = 0, refused = 0;

	listener = oc_file_above(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (listener < 0)
		return -errno;
	if (bind(listener, (struct sockaddr *)&addr, len) || listen(listener, (int)boot->nranks))
		err = -errno;
	while (!err && arrived < boot->nranks)
		err = accept_one(boot, listener, all, &arrived, &refused);
	close(listener);
	if (err == -ETIMEDOUT && refused == -EPERM)
		return refused;
	return err;
}

static int gather_by_fd(struct oc_bootstrap *boot, struct oc_arrival *all)
{
	for (uint32_t i = 1; i < boot->nranks; i++) {
		uint32_t rank;
		int err = oc_address_check_peer(boot->wire.fds[i]);

		if (!err)
			err = hear_hello(boot, boot->wire.fds[i], boot->wire.deadline, &rank,
					 &all[i]);
		if (!err && rank != i)
			err = -EINVAL;
		if (err)
			return err;
	}
	return 0;
}

static int gather(struct oc_bootstrap *boot, const struct oc_node_attr *attr,
		  const struct oc_arrival *mine, struct oc_arrival *all)
{
	struct oc_vote verdict = {0};
	int err;

	for (uint32_t i = 0; i < boot->nranks; i++)
		all[i] = (struct oc_arrival){.arena_fd = -1};
	all[0] = *mine;
	if (attr->name) {
		err = gather_by_name(boot, attr->name, all);
	} else {
		for (uint32_t i = 1; i < boot->nranks; i++)
			boot->wire.fds[i] = attr->peer_fds[i];
		err = gather_by_fd(boot, all);
	}
	if (!err)
		return 0;
	verdict.status = err;
	for (uint32_t i = 1; i < boot->nranks; i++) {
		if (boot->wire.fds[i] >= 0)
			send(boot->wire.fds[i], &verdict, sizeof(verdict),
			     MSG_NOSIGNAL | MSG_DONTWAIT);
		if (all[i].arena_fd >= 0)
			close(all[i].arena_fd);
		all[i].arena_fd = -1;
	}
	return err;
}

static int greet(struct oc_bootstrap *boot, const struct oc_node_attr *attr,
		 const struct oc_arrival *mine)
{
	struct oc_hello hello = {.magic = OC_HELLO_MAGIC,
				 .abi = OC_HELLO_ABI,
				 .rank = boot->rank,
				 .nranks = boot->nranks,
				 .arena_size = mine->arena_size};
	int err = 0;

	if (attr->name)
		err = dial(boot, attr->name);
	else
		boot->wire.fds[0] = attr->fd;
	if (!err)
		err = oc_address_check_peer(boot->wire.fds[0]);
	if (!err)
		err = oc_wire_send(&boot->wire, boot->wire.fds[0], &hello, sizeof(hello),
				   &mine->arena_fd, mine->arena_fd >= 0 ? 1 : 0);
	/* Rank 0 has given up already; the first vote reads why. */
	return err == -EPIPE ? 0 : err;
}

int oc_bootstrap_open(struct oc_bootstrap *boot, const struct oc_node_attr *attr,
		      const struct oc_arrival *mine, struct oc_arrival *all)
{
	uint32_t n = attr->rank == 0 ? attr->nranks : 1;

	*boot = (struct oc_bootstrap){.rank = attr->rank,
				      .nranks = attr->nranks,
				      .borrowed = !attr->name,
				      .timeout_ms = attr->timeout_ms ? attr->timeout_ms : 60000};
	boot->wire.count = n;
	boot->wire.fds = malloc(n * sizeof(*boot->wire.fds));
	if (!boot->wire.fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		boot->wire.fds[i] = -1;
	restart_clock(boot);
	return attr->rank == 0 ? gather(boot, attr, mine, all) : greet(boot, attr, mine);
}

void oc_bootstrap_close(struct oc_bootstrap *boot)
{
	uint32_t n = boot->rank == 0 ? boot->nranks : 1;

	if (!boot->wire.fds)
		return;
	for (uint32_t i = 0; i < n && !boot->borrowed; i++)
		if (boot->wire.fds[i] >= 0)
			close(boot->wire.fds[i]);
	free(boot->wire.fds);
	boot->wire.fds = NULL;
}

static int collect_votes(struct oc_bootstrap *boot, struct oc_vote *sum)
{
	for (uint32_t i = 1; i < boot->nranks; i++) {
		struct oc_vote vote;
		int err = oc_wire_recv(&boot->wire, boot->wire.fds[i], &vote, sizeof(vote), NULL,
				       NULL, boot->wire.deadline);

		if (err)
			return err;
		if (!sum->status && vote.status < 0)
			sum->status = vote.status;
		sum->flags |= vote.flags;
	}
	return 0;
}

int oc_bootstrap_agree(struct oc_bootstrap *boot, int status, uint32_t *flags)
{
	struct oc_vote vote = {.status = status, .flags = *flags};
	int err;

	restart_clock(boot);
	if (boot->rank == 0) {
		err = collect_votes(boot, &vote);
		if (err)
			vote.status = err;
		/* Who died meanwhile needs no answer. */
		for (uint32_t i = 1; i < boot->nranks; i++)
			oc_wire_send(&boot->wire, boot->wire.fds[i], &vote, sizeof(vote), NULL, 0);
	} else {
		err = oc_wire_send(&boot->wire, boot->wire.fds[0], &vote, sizeof(vote), NULL, 0);
		/* Rank 0 may have given up and said why before it closed. */
		if (!err || err == -EPIPE)
			err = oc_wire_recv(&boot->wire, boot->wire.fds[0], &vote, sizeof(vote),
					   NULL, NULL, boot->wire.deadline);
		if (err)
			return err;
	}
	*flags = vote.flags;
	return vote.status;
}

int oc_bootstrap_give(struct oc_bootstrap *boot, uint32_t peer, const int *fds, size_t count)
{
	char byte = 0;

	return oc_wire_send(&boot->wire, boot->wire.fds[peer], &byte, 1, fds, count);
}

int oc_bootstrap_take(struct oc_bootstrap *boot, int *fds, size_t count)
{
	size_t got = count;
	char byte;
	int err = oc_wire_recv(&boot->wire, boot->wire.fds[0], &byte, 1, fds, &got,
			       boot->wire.deadline);

	if (err || got == count)
		return err;
	while (got)
		close(fds[--got]);
	return -EPROTO;
}
