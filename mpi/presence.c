// SPDX-License-Identifier: BSD-3-Clause
#include "presence.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"

#define BACKLOG 4096 /* peers that have looked; the kernel's limit is as high */

static struct {
	bool named; /* the job */
	uint64_t job;
	long rank;
	int fd;	   /* the name's, -1 none */
	int probe; /* what looks for others; made early, for all have to see the same */
} self = {.fd = -1, .probe = -1};

/* FNV-1a, Fowler, Noll and Vo. */
static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}

static int make_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static socklen_t name_of(struct sockaddr_un *addr, long rank)
{
	char name[48];

	snprintf(name, sizeof(name), "%016llx.%ld", (unsigned long long)self.job, rank);
	return oc_address_make(addr, name);
}

void oc_presence_announce(void)
{
	const char *space = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");
	const char *server = getenv("PMIX_SERVER_URI2");
	struct sockaddr_un addr;
	socklen_t len;

	if (!space || !rank)
		return;
	self.named = true;
	/* A name of a job may come again in another one's; its server's address does not. */
	self.job = hash(hash(0xcbf29ce484222325u, space), server ? server : "");
	self.rank = strtol(rank, NULL, 10);
	len = name_of(&addr, self.rank);
	self.fd = make_socket();
	self.probe = make_socket();
	if (self.fd < 0 || self.probe < 0 || bind(self.fd, (struct sockaddr *)&addr, len) ||
	    listen(self.fd, BACKLOG))
		oc_presence_withdraw();
}

static bool is_here(long rank)
{
	struct sockaddr_un addr;
	socklen_t len = name_of(&addr, rank);
	bool here;

	/* A queue that is full belongs to somebody, too. */
	here = connect(self.probe, (struct sockaddr *)&addr, len)
		       ? errno == EAGAIN
		       : !oc_address_check_peer(self.probe);
	close(self.probe);
	self.probe = make_socket();
	return here;
}

int oc_presence_find(int world_size, int *ranks, int room)
{
	int count = 0;

	if (!self.named)
		return -1;
	if (self.fd < 0)
		return 0;
	for (int rank = 0; rank < world_size; rank++) {
		if (rank != self.rank && !is_here(rank))
			continue;
		if (count < room)
			ranks[count] = rank;
		count++;
	}
	return count;
}

void oc_presence_withdraw(void)
{
	if (self.fd >= 0)
		close(self.fd);
	if (self.probe >= 0)
		close(self.probe);
	self.fd = self.probe = -1;
}
