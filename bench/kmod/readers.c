/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Do readers of one region hinder each other? 1 to 16 processes copy 64 bytes
 * (all cost is the way there) or 64 KiB, all from the same region, or each from one
 * of its own: the same number of copies a second if nothing is shared on the way.
 * Both in turns, and the best round of each: what disturbs only ever slows down.
 */

#include <err.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define READERS	 16
#define PART	 ((size_t)64 << 10)
#define ROUNDS	 5
#define ROUND_NS 3e8

struct shared {
	atomic_int ready;
	atomic_int go;
	atomic_ulong copies;
};

static void read_on(struct shared *shared, uint64_t cookie, size_t length, int readers)
{
	char *to = memory_make(PART, 0);
	int fd = device_open();
	unsigned long copies = 0;
	double end;

	atomic_fetch_add(&shared->ready, 1);
	while (atomic_load(&shared->ready) < readers)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	end = now() + ROUND_NS;
	do {
		for (int i = 0; i < 16; i++)
			device_copy(fd, cookie, to, length);
		copies += 16;
	} while (now() < end);
	atomic_fetch_add(&shared->copies, copies);
	_exit(0);
}

static double rate(const uint64_t *cookies, int own, int readers, size_t length)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double copies;

	if (shared == MAP_FAILED)
		err(1, "mmap");
	for (int i = 0; i < readers; i++) {
		pid_t child = fork();

		if (child < 0)
			err(1, "fork");
		if (!child)
			read_on(shared, cookies[own ? i : 0], length, readers);
	}
	for (int i = 0; i < readers; i++) {
		int status;

		if (wait(&status) < 0 || status)
			errx(1, "a reader failed");
	}
	copies = shared->copies;
	munmap(shared, sizeof(*shared));
	return copies / (ROUND_NS / 1e9);
}

int main(void)
{
	char *memory = memory_make(READERS * PART, 0);
	int fd = device_open();
	uint64_t cookies[READERS];

	for (int i = 0; i < READERS; i++)
		cookies[i] = device_create(fd, memory + i * PART, PART);
	for (size_t length = 64; length <= PART; length *= PART / 64) {
		for (int readers = 1; readers <= READERS; readers *= 2) {
			double best[2] = {0, 0};

			for (int i = 0; i < 2 * ROUNDS; i++) {
				double now_rate = rate(cookies, i % 2, readers, length);

				if (now_rate > best[i % 2])
					best[i % 2] = now_rate;
			}
			for (int own = 0; own < 2; own++) {
				char name[32];

				snprintf(name, sizeof(name), "%s_%d", own ? "own" : "one", readers);
				figure(name, "small", length, best[own], "copies/s");
			}
		}
	}
	return 0;
}
