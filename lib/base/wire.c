// SPDX-License-Identifier: BSD-3-Clause
#include "base/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

int64_t oc_wire_now(void)
{
	return (int64_t)(oc_clock_ns() / 1000000);
}

void oc_wire_nap(long ms)
{
	struct timespec ts = {.tv_nsec = ms * 1000000};

	nanosleep(&ts, NULL);
}

int oc_wire_wait(const struct oc_wire *wire, int fd, short events, int64_t deadline)
{
	uint32_t n = wire->count;
	struct pollfd *pfd = malloc((n + 1) * sizeof(*pfd));
	int err = 0;

	if (!pfd)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		pfd[i] = (struct pollfd){.fd = wire->fds[i] == fd ? -1 : wire->fds[i]};
	pfd[n] = (struct pollfd){.fd = fd, .events = events};
	for (;;) {
		int64_t left = deadline - oc_wire_now();
		int got;

		if (left <= 0) {
			err = -ETIMEDOUT;
			break;
		}
		got = poll(pfd, n + 1, left > 60000 ? 60000 : (int)left);
		if (got < 0 && errno != EINTR) {
			err = -errno;
			break;
		}
		if (got <= 0)
			continue;
		/* Data that came before a hang-up is still to be read. */
		if (pfd[n].revents & (events | POLLNVAL))
			break;
		err = -EPIPE;
		break;
	}
	free(pfd);
	return err;
}

int oc_wire_send(const struct oc_wire *wire, int fd, const void *buf, size_t len, const int *fds,
		 size_t nfds)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(OC_WIRE_FDS * sizeof(int))];
	} control;
	const char *at = buf;

	while (len) {
		struct iovec iov = {.iov_base = (void *)at, .iov_len = len};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
		ssize_t sent;
		int err;

		if (nfds) {
			struct cmsghdr *cmsg = &control.align;

			memset(&control, 0, sizeof(control));
			cmsg->cmsg_level = SOL_SOCKET;
			cmsg->cmsg_type = SCM_RIGHTS;
			cmsg->cmsg_len = CMSG_LEN(nfds * sizeof(int));
			memcpy(CMSG_DATA(cmsg), fds, nfds * sizeof(int));
			msg.msg_control = &control;
			msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		}
		sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0) {
			at += sent;
			len -= (size_t)sent;
			nfds = 0; /* they went with the first byte */
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == ETOOMANYREFS) {
			/* The kernel bounds descriptors in flight per user by
			 * RLIMIT_NOFILE: peers take theirs as we wait. */
			if (oc_wire_now() >= wire->deadline)
				return -ETIMEDOUT;
			oc_wire_nap(1);
			continue;
		}
		if (errno == ECONNRESET)
			return -EPIPE;
		if (errno != EAGAIN)
			return -errno;
		err = oc_wire_wait(wire, fd, POLLOUT, wire->deadline);
		if (err)
			return err;
	}
	return 0;
}

/* Keeps at most @max of the descriptors that came, closes the others. */
static size_t take_fds(struct msghdr *msg, int *fds, size_t max)
{
	size_t kept = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			fd = oc_file_above(fd);
			if (fd < 0)
				msg->msg_flags |= MSG_CTRUNC; /* no number for it */
			else if (kept < max)
				fds[kept++] = fd;
			else
				close(fd);
		}
	}
	return kept;
}

int oc_wire_recv(const struct oc_wire *wire, int fd, void *buf, size_t len, int *fds, size_t *nfds,
		 int64_t deadline)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(OC_WIRE_FDS * sizeof(int))];
	} control;
	size_t room = nfds ? *nfds : 0, have = 0;
	char *at = buf;
	int err;

	while (len) {
		struct iovec iov = {.iov_base = at, .iov_len = len};
		struct msghdr msg = {.msg_iov = &iov,
				     .msg_iovlen = 1,
				     .msg_control = &control,
				     .msg_controllen = sizeof(control)};
		ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (got > 0) {
			have += take_fds(&msg, fds + have, room - have);
			at += got;
			len -= (size_t)got;
			if (!(msg.msg_flags & MSG_CTRUNC))
				continue;
			/* Out of descriptor numbers, most likely. */
			err = -EMFILE;
			goto fail;
		}
		if (got == 0) {
			err = -EPIPE;
			goto fail;
		}
		if (errno == EINTR)
			continue;
		err = errno == ECONNRESET ? -EPIPE : -errno;
		if (errno == EAGAIN)
			err = oc_wire_wait(wire, fd, POLLIN, deadline);
		if (err)
			goto fail;
	}
	if (nfds)
		*nfds = have;
	return 0;
fail:
	while (have)
		close(fds[--have]);
	return err;
}
