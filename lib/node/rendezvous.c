// SPDX-License-Identifier: BSD-3-Clause
#include "node/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/env.h"

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

static void restart_clock(struct oc_rendezvous *rv)
{
	rv->wire.deadline = oc_wire_now() + rv->timeout_ms + (rv->rank ? OC_GRACE_MS : 0);
}

static int dial(struct oc_rendezvous *rv, const char *name)
{
	struct sockaddr_un addr;
	socklen_t len = oc_address_make(&addr, name);
	long nap = 1;
	int err;

	rv->wire.fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (rv->wire.fds[0] < 0)
		return -errno;
	for (;;) {
		if (!connect(rv->wire.fds[0], (struct sockaddr *)&addr, len))
			return 0;
		err = errno;
		/* Nobody there yet, or a full backlog. */
		if (err != ECONNREFUSED && err != EAGAIN && err != EINTR)
			return -err;
		if (oc_wire_now() >= rv->wire.deadline)
			return -ETIMEDOUT;
		oc_wire_nap(nap);
		nap = nap < 16 ? nap * 2 : nap;
	}
}

/* Rank 0: who is at the other end of @fd? */
static int hear_hello(struct oc_rendezvous *rv, int fd, int64_t deadline, uint32_t *rank,
		      struct oc_arrival *who)
{
	struct oc_hello hello;
	size_t nfds = 1;
	int err;

	who->arena_fd = -1;
	err = oc_wire_recv(&rv->wire, fd, &hello, sizeof(hello), &who->arena_fd, &nfds, deadline);
	if (err)
		return err;
	if (!nfds)
		who->arena_fd = -1;
	who->arena_size = nfds ? hello.arena_size : 0;
	*rank = hello.rank;
	if (hello.magic == OC_HELLO_MAGIC && hello.abi == OC_HELLO_ABI &&
	    hello.nranks == rv->nranks && hello.rank > 0 && hello.rank < rv->nranks)
		return 0;
	if (nfds)
		close(who->arena_fd);
	who->arena_fd = -1;
	return hello.magic == OC_HELLO_MAGIC ? -EINVAL : -EPROTO;
}

/* Accepts one connection. 0 also when it was a stranger's, who is sent away
 * and must not spoil the join of the others; *@refused then says why. */
static int accept_one(struct oc_rendezvous *rv, int listener, struct oc_arrival *all,
		      uint32_t *arrived, int *refused)
{
	struct oc_arrival who = {.arena_fd = -1};
	struct oc_vote verdict = {0};
	int64_t deadline;
	uint32_t rank;
	int fd, err;

	err = oc_wire_wait(&rv->wire, listener, POLLIN, rv->wire.deadline);
	if (err)
		return err;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
	err = oc_address_check_peer(fd);
	if (err)
		goto send_away;
	deadline = oc_wire_now() + OC_HELLO_MS;
	err = hear_hello(rv, fd, deadline < rv->wire.deadline ? deadline : rv->wire.deadline, &rank,
			 &who);
	if (!err && rv->wire.fds[rank] >= 0)
		err = -EINVAL;
	if (err)
		goto send_away;
	rv->wire.fds[rank] = fd;
	all[rank] = who;
	(*arrived)++;
	return 0;

send_away:
	*refused = err;
	verdict.status = err;
	if (send(fd, &verdict, sizeof(verdict), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		oc_note("rendezvous: a stranger left before it was sent away");
	if (who.arena_fd >= 0)
		close(who.arena_fd);
	close(fd);
	return 0;
}

static int gather_by_name(struct oc_rendezvous *rv, const char *name, struct oc_arrival *all)
{
	struct sockaddr_un addr;
	socklen_t len = oc_address_make(&addr, name);
	uint32_t arrived = 1;
	int listener, err = 0, refused = 0;

	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0)
		return -errno;
	if (bind(listener, (struct sockaddr *)&addr, len) || listen(listener, (int)rv->nranks))
		err = -errno;
	while (!err && arrived < rv->nranks)
		err = accept_one(rv, listener, all, &arrived, &refused);
	close(listener);
	if (err == -ETIMEDOUT && refused == -EPERM)
		return refused;
	return err;
}

static int gather_by_fd(struct oc_rendezvous *rv, struct oc_arrival *all)
{
	for (uint32_t i = 1; i < rv->nranks; i++) {
		uint32_t rank;
		int err = oc_address_check_peer(rv->wire.fds[i]);

		if (!err)
			err = hear_hello(rv, rv->wire.fds[i], rv->wire.deadline, &rank, &all[i]);
		if (!err && rank != i)
			err = -EINVAL;
		if (err)
			return err;
	}
	return 0;
}

static int gather(struct oc_rendezvous *rv, const struct oc_node_attr *attr,
		  const struct oc_arrival *mine, struct oc_arrival *all)
{
	struct oc_vote verdict = {0};
	int err;

	for (uint32_t i = 0; i < rv->nranks; i++)
		all[i] = (struct oc_arrival){.arena_fd = -1};
	all[0] = *mine;
	if (attr->name) {
		err = gather_by_name(rv, attr->name, all);
	} else {
		for (uint32_t i = 1; i < rv->nranks; i++)
			rv->wire.fds[i] = attr->peer_fds[i];
		err = gather_by_fd(rv, all);
	}
	if (!err)
		return 0;
	verdict.status = err;
	for (uint32_t i = 1; i < rv->nranks; i++) {
		if (rv->wire.fds[i] >= 0)
			send(rv->wire.fds[i], &verdict, sizeof(verdict),
			     MSG_NOSIGNAL | MSG_DONTWAIT);
		if (all[i].arena_fd >= 0)
			close(all[i].arena_fd);
		all[i].arena_fd = -1;
	}
	return err;
}

static int greet(struct oc_rendezvous *rv, const struct oc_node_attr *attr,
		 const struct oc_arrival *mine)
{
	struct oc_hello hello = {.magic = OC_HELLO_MAGIC,
				 .abi = OC_HELLO_ABI,
				 .rank = rv->rank,
				 .nranks = rv->nranks,
				 .arena_size = mine->arena_size};
	int err = 0;

	if (attr->name)
		err = dial(rv, attr->name);
	else
		rv->wire.fds[0] = attr->fd;
	if (!err)
		err = oc_address_check_peer(rv->wire.fds[0]);
	if (!err)
		err = oc_wire_send(&rv->wire, rv->wire.fds[0], &hello, sizeof(hello),
				   &mine->arena_fd, mine->arena_fd >= 0 ? 1 : 0);
	/* Rank 0 has given up already; the first vote reads why. */
	return err == -EPIPE ? 0 : err;
}

int oc_rendezvous_open(struct oc_rendezvous *rv, const struct oc_node_attr *attr,
		       const struct oc_arrival *mine, struct oc_arrival *all)
{
	uint32_t n = attr->rank == 0 ? attr->nranks : 1;

	*rv = (struct oc_rendezvous){.rank = attr->rank,
				     .nranks = attr->nranks,
				     .borrowed = !attr->name,
				     .timeout_ms = attr->timeout_ms ? attr->timeout_ms : 60000};
	rv->wire.count = n;
	rv->wire.fds = malloc(n * sizeof(*rv->wire.fds));
	if (!rv->wire.fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		rv->wire.fds[i] = -1;
	restart_clock(rv);
	return attr->rank == 0 ? gather(rv, attr, mine, all) : greet(rv, attr, mine);
}

void oc_rendezvous_close(struct oc_rendezvous *rv)
{
	uint32_t n = rv->rank == 0 ? rv->nranks : 1;

	if (!rv->wire.fds)
		return;
	for (uint32_t i = 0; i < n && !rv->borrowed; i++)
		if (rv->wire.fds[i] >= 0)
			close(rv->wire.fds[i]);
	free(rv->wire.fds);
	rv->wire.fds = NULL;
}

static int collect_votes(struct oc_rendezvous *rv, struct oc_vote *sum)
{
	for (uint32_t i = 1; i < rv->nranks; i++) {
		struct oc_vote vote;
		int err = oc_wire_recv(&rv->wire, rv->wire.fds[i], &vote, sizeof(vote), NULL, NULL,
				       rv->wire.deadline);

		if (err)
			return err;
		if (!sum->status && vote.status < 0)
			sum->status = vote.status;
		sum->flags |= vote.flags;
	}
	return 0;
}

int oc_rendezvous_agree(struct oc_rendezvous *rv, int status, uint32_t *flags)
{
	struct oc_vote vote = {.status = status, .flags = *flags};
	int err;

	restart_clock(rv);
	if (rv->rank == 0) {
		err = collect_votes(rv, &vote);
		if (err)
			vote.status = err;
		/* Who died meanwhile needs no answer. */
		for (uint32_t i = 1; i < rv->nranks; i++)
			oc_wire_send(&rv->wire, rv->wire.fds[i], &vote, sizeof(vote), NULL, 0);
	} else {
		err = oc_wire_send(&rv->wire, rv->wire.fds[0], &vote, sizeof(vote), NULL, 0);
		/* Rank 0 may have given up and said why before it closed. */
		if (!err || err == -EPIPE)
			err = oc_wire_recv(&rv->wire, rv->wire.fds[0], &vote, sizeof(vote), NULL,
					   NULL, rv->wire.deadline);
		if (err)
			return err;
	}
	*flags = vote.flags;
	return vote.status;
}

int oc_rendezvous_give(struct oc_rendezvous *rv, uint32_t peer, const int *fds, size_t count)
{
	char byte = 0;

	return oc_wire_send(&rv->wire, rv->wire.fds[peer], &byte, 1, fds, count);
}

int oc_rendezvous_take(struct oc_rendezvous *rv, int *fds, size_t count)
{
	size_t got = count;
	char byte;
	int err = oc_wire_recv(&rv->wire, rv->wire.fds[0], &byte, 1, fds, &got, rv->wire.deadline);

	if (err || got == count)
		return err;
	while (got)
		close(fds[--got]);
	return -EPROTO;
}
