// SPDX-License-Identifier: BSD-3-Clause
#include "discovery.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/env.h"
#include "base/file.h"
#include "base/wire.h"
#include "launcher.h"

#define BACKLOG 4096 /* peers that have looked; the kernel's limit is as high */
/* How long the first waits for a rank that does not go away, and one for the first. */
#define AGREE_MS  10000
#define ANSWER_MS 30000

/* What a rank tells the first, which answers with a byte. */
struct report {
	int64_t rank;
	uint64_t found; /* hash of the ranks */
	uint64_t willing;
};

static struct {
	bool named; /* the job, by its launcher */
	bool agreed;
	uint64_t space; /* the name of the job on all nodes, 0 none */
	uint64_t job;	/* and on this one */
	long rank;
	int fd;	   /* the name's, -1 none */
	int first; /* to the lowest rank found, -1 if that is this one */
	/* On the lowest, by place among the ranks: connections it made, until that rank has
	 * reported, and those that the others made to it. */
	int *line, *peer;
	int count;
} self = {.fd = -1, .first = -1};

/* FNV-1a, Fowler, Noll and Vo. */
static uint64_t hash_byte(uint64_t h, unsigned char byte)
{
	return (h ^ byte) * 0x100000001b3u;
}

static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = hash_byte(h, (unsigned char)*text);
	return h;
}

static uint64_t hash_ranks(const int *ranks, int count)
{
	const unsigned char *at = (const unsigned char *)ranks;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < (size_t)count * sizeof(*ranks); i++)
		h = hash_byte(h, at[i]);
	return h;
}

static int make_socket(void)
{
	return oc_file_above(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static void close_socket(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static socklen_t name_of(struct sockaddr_un *addr, long rank)
{
	char name[48];

	snprintf(name, sizeof(name), "%016llx.%ld", (unsigned long long)self.job, rank);
	return oc_address_make(addr, name);
}

static void announce(void)
{
	struct sockaddr_un addr;
	socklen_t len = name_of(&addr, self.rank);

	self.fd = make_socket();
	if (self.fd < 0 || bind(self.fd, (struct sockaddr *)&addr, len) ||
	    listen(self.fd, BACKLOG)) {
		oc_note("this rank cannot announce itself: %s", strerror(errno));
		oc_discovery_withdraw();
	}
}

void oc_discovery_announce(void)
{
	struct oc_launcher said;
	int err;

	/* A session came first. */
	if (self.fd >= 0)
		return;
	err = oc_launcher_ask(&said);
	if (err == -ENOENT)
		return;
	self.named = true;
	if (err) {
		oc_note("this rank cannot announce itself: its launcher does not name the job");
		return;
	}
	self.space = said.job ? hash(0xcbf29ce484222325u, said.job) : 0;
	self.job = hash(self.space, said.here);
	self.rank = said.rank;
	announce();
}

bool oc_discovery_announce_as(const char *name, int rank)
{
	self.job = hash(0xcbf29ce484222325u, name);
	self.rank = rank;
	announce();
	return self.fd >= 0;
}

uint64_t oc_discovery_job(void)
{
	return self.space;
}

/*
 * Marks the ranks whose names are taken, by whomever, as the kernel lists them: a job has
 * many more ranks than this machine. False when there is no list.
 */
static bool list_names(bool *taken, int world_size)
{
	FILE *file = fopen("/proc/net/unix", "re");
	struct sockaddr_un addr;
	char line[512], *at;
	size_t prefix;

	if (!file)
		return false;
	name_of(&addr, 0);
	prefix = strlen(addr.sun_path + 1) - 1;
	while (fgets(line, sizeof(line), file)) {
		at = strchr(line, '@');
		if (!at || strncmp(at + 1, addr.sun_path + 1, prefix))
			continue;
		long rank = strtol(at + 1 + prefix, NULL, 10);

		if (rank >= 0 && rank < world_size)
			taken[rank] = true;
	}
	fclose(file);
	return true;
}

/* Is @rank here? 1, and in *@fd a connection to it, or -1 if it has too many already; 0;
 * or -errno when this rank cannot look. */
static int look(long rank, int *fd)
{
	struct sockaddr_un addr;
	socklen_t len = name_of(&addr, rank);
	int here;

	*fd = make_socket();
	if (*fd < 0)
		return -errno;
	if (!connect(*fd, (struct sockaddr *)&addr, len)) {
		here = !oc_address_check_peer(*fd);
		if (!here)
			close_socket(fd);
		return here;
	}
	here = errno == EAGAIN;
	close_socket(fd);
	return here;
}

/* Keeps what the agreement needs of a connection to the rank at @place. */
static void keep(int place, bool is_first, int fd)
{
	if (is_first)
		self.line[place] = fd;
	else if (!place)
		self.first = fd;
	else
		close_socket(&fd);
}

static int find(int world_size, const bool *taken, int *ranks, int room)
{
	int count = 0;

	for (int rank = 0; rank < world_size; rank++) {
		int fd = -1, here = 1;

		if (rank != self.rank)
			here = taken[rank] ? look(rank, &fd) : 0;
		if (here < 0)
			return here;
		if (!here)
			continue;
		if (count < room) {
			ranks[count] = rank;
			keep(count, ranks[0] == self.rank, fd);
		} else {
			close_socket(&fd);
		}
		count++;
	}
	return count;
}

int oc_discovery_find(int world_size, int *ranks, int room)
{
	bool *taken = calloc((size_t)world_size, sizeof(*taken));
	int count = -ENOMEM;

	if (!self.named && self.fd < 0) {
		free(taken);
		return -1;
	}
	self.line = malloc(2 * (size_t)room * sizeof(*self.line));
	if (taken && self.line && self.fd >= 0) {
		self.peer = self.line + room;
		memset(self.line, -1, 2 * (size_t)room * sizeof(*self.line));
		self.count = room;
		if (!list_names(taken, world_size))
			memset(taken, true, (size_t)world_size * sizeof(*taken));
		count = find(world_size, taken, ranks, room);
	}
	free(taken);
	if (count < 0) {
		if (self.fd >= 0)
			oc_note("this rank cannot look for others: %s", strerror(-count));
		oc_discovery_withdraw();
		return 0;
	}
	return count;
}

/* Exactly @len bytes, sent at once by the other end. */
static bool hear(int fd, void *data, size_t len, int64_t deadline)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	int64_t left = deadline - oc_wire_now();

	while (left > 0 && poll(&wait, 1, (int)left) < 0 && errno == EINTR)
		left = deadline - oc_wire_now();
	return left > 0 && recv(fd, data, len, MSG_DONTWAIT) == (ssize_t)len;
}

static bool tell(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/* The first: takes one connection. False when somebody cannot agree. */
static bool take_report(const int *ranks, int count, int *heard, int64_t deadline)
{
	int fd = oc_file_above(accept4(self.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)), place;
	struct report report;
	char no = 0;

	if (fd < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
	/* Most have only looked. */
	if (oc_address_check_peer(fd) || !hear(fd, &report, sizeof(report), deadline)) {
		close(fd);
		return true;
	}
	for (place = 1; place < count && ranks[place] != report.rank; place++)
		;
	if (place == count || self.peer[place] >= 0) {
		/* Not found by this rank: it came too late. */
		tell(fd, &no, sizeof(no));
		close(fd);
		return true;
	}
	self.peer[place] = fd;
	close_socket(&self.line[place]);
	(*heard)++;
	return report.willing && report.found == hash_ranks(ranks, count);
}

/* The first: until something comes in. False when a rank that has not reported is gone. */
static bool await_reports(struct pollfd *polls, int count, int64_t deadline)
{
	int64_t left = deadline - oc_wire_now();

	polls[0] = (struct pollfd){.fd = self.fd, .events = POLLIN};
	for (int i = 1; i < count; i++)
		polls[i] = (struct pollfd){.fd = self.line[i], .events = POLLIN};
	if (left <= 0)
		return false;
	if (poll(polls, (nfds_t)count, (int)left) < 0)
		return errno == EINTR;
	for (int i = 1; i < count; i++)
		if (polls[i].revents)
			return false;
	return true;
}

static bool gather(const int *ranks, int count, bool willing)
{
	struct pollfd *polls = calloc((size_t)count, sizeof(*polls));
	int64_t deadline = oc_wire_now() + AGREE_MS;
	bool agreed = polls && willing;
	int heard = 1;
	char verdict;

	while (agreed && heard < count)
		agreed = await_reports(polls, count, deadline) &&
			 take_report(ranks, count, &heard, deadline);
	free(polls);
	verdict = agreed;
	for (int i = 1; i < count; i++)
		if (self.peer[i] >= 0)
			tell(self.peer[i], &verdict, sizeof(verdict));
	return agreed;
}

static bool report_to_first(const int *ranks, int count, bool willing)
{
	struct report mine = {self.rank, hash_ranks(ranks, count), willing};
	int64_t deadline = oc_wire_now() + ANSWER_MS;
	char verdict = 0;

	/* The first had too many connections when this rank looked. */
	while (self.first < 0 && look(ranks[0], &self.first) == 1 && oc_wire_now() < deadline)
		if (self.first < 0)
			oc_wire_nap(1);
	return self.first >= 0 && tell(self.first, &mine, sizeof(mine)) &&
	       hear(self.first, &verdict, sizeof(verdict), deadline) && verdict;
}

bool oc_discovery_agree(const int *ranks, int count, bool willing)
{
	self.agreed = ranks[0] == self.rank ? gather(ranks, count, willing)
					    : report_to_first(ranks, count, willing);
	if (!self.agreed)
		oc_discovery_withdraw();
	return self.agreed;
}

bool oc_discovery_sockets(int *fd, const int **peer_fds)
{
	*fd = self.first;
	*peer_fds = self.first < 0 ? self.peer : NULL;
	return self.agreed;
}

void oc_discovery_withdraw(void)
{
	close_socket(&self.fd);
	close_socket(&self.first);
	for (int i = 0; self.line && i < 2 * self.count; i++)
		close_socket(&self.line[i]);
	free(self.line);
	self.line = self.peer = NULL;
	self.count = 0;
	self.agreed = false;
}
