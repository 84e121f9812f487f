/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every allocation (and access to user memory, where the kernel can) of a
 * request fails once: the first, then the second, until the request has no
 * more. Each failure must be an errno, undo what was begun, and leave devices
 * on which the same request then succeeds.
 */
#ifndef FAIL_H
#define FAIL_H

#include <stdbool.h>

struct fail_request {
	const char *name;
	int (*run)(void); /* 0, or -1 and errno; leaves nothing behind but in open files */
	bool final;	  /* not to be repeated after a failure: it is done all the same */
};

/*
 * Each request up to the one without name. Before each run @prepare opens
 * files, after it @finish closes them. The case is skipped where the kernel
 * injects no faults.
 */
void fail_each(const struct fail_request *requests, void (*prepare)(void), void (*finish)(void));

/*
 * The same with two allocations in a row, and then the next two: where the kernel tries again in
 * another way, as the XArray does, one failure is never told.
 */
void fail_in_pairs(const struct fail_request *r, void (*prepare)(void), void (*finish)(void));

/* An ioctl through a file of its own: for what is done once a file. */
int fail_on_new_file(const char *path, unsigned long command, void *arg);

#endif
