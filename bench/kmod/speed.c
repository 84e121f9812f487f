/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast bytes move from a region, warm: through a mapping, by the kernel
 * into local memory and between two regions; beside memcpy() and Cross Memory Attach
 * in the same run, taken in turns. The best of the rounds counts: what disturbs
 * only ever adds time.
 */

#include <err.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device.h"

#define ROUNDS 60

enum way { MEMCPY, MAPPED, COPY, BETWEEN, CMA, WAYS };

static const char *const way_names[WAYS] = {"memcpy", "mapped", "copy", "copy_between", "cma"};

struct buffers {
	int fd;
	size_t length;
	char *from;
	char *to;
	char *mapped;
	uint64_t from_cookie;
	uint64_t to_cookie;
};

static void move(const struct buffers *buffers, enum way way)
{
	struct iovec to = {.iov_base = buffers->to, .iov_len = buffers->length};
	struct iovec from = {.iov_base = buffers->from, .iov_len = buffers->length};

	switch (way) {
	case MEMCPY:
		memcpy(buffers->to, buffers->from, buffers->length);
		break;
	case MAPPED:
		memcpy(buffers->to, buffers->mapped, buffers->length);
		break;
	case COPY:
		device_copy(buffers->fd, buffers->from_cookie, buffers->to, buffers->length);
		break;
	case BETWEEN:
		device_copy_between(buffers->fd, buffers->from_cookie, buffers->to_cookie,
				    buffers->length);
		break;
	default:
		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)buffers->length)
			err(1, "process_vm_readv");
	}
}

static void speed_measure(int fd, size_t length, int huge)
{
	struct buffers buffers = {
		.fd = fd,
		.length = length,
		.from = memory_make(length, huge),
		.to = memory_make(length, huge),
	};
	double best[WAYS];

	buffers.from_cookie = device_create(fd, buffers.from, length);
	buffers.to_cookie = device_create(fd, buffers.to, length);
	buffers.mapped = device_map(fd, buffers.from_cookie, length, huge);
	for (int round = 0; round < ROUNDS; round++) {
		for (enum way way = 0; way < WAYS; way++) {
			double time = now();

			move(&buffers, way);
			time = now() - time;
			if (!round || time < best[way])
				best[way] = time;
		}
	}
	for (enum way way = 0; way < WAYS; way++)
		figure(way_names[way], huge ? "huge" : "small", length, length / best[way], "GB/s");
	munmap(buffers.mapped, length);
	device_destroy(fd, buffers.from_cookie);
	device_destroy(fd, buffers.to_cookie);
	munmap(buffers.from, length);
	munmap(buffers.to, length);
}

int main(void)
{
	int fd = device_open();

	for (size_t length = 256 << 10; length <= 16 << 20; length *= 4)
		for (int huge = 0; huge < 2; huge++)
			speed_measure(fd, length, huge);
	return 0;
}
