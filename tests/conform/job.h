/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_JOB_H
#define OC_TEST_JOB_H

/*
 * Test programs of several processes: the parent forks one process a rank,
 * each runs the case's body, and the case passes when every rank exits with 0
 * in time. A rank a case means to kill is named in job_expect_death().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <onecopy/onecopy.h>

struct job {
	uint32_t rank;
	uint32_t nranks;
	int fd;			   /* socket to rank 0; ranks > 0 */
	int peer_fds[8];	   /* rank 0 */
	char name[64];		   /* a bootstrap name nobody else uses */
	struct job_shared *shared; /* anonymous memory all ranks see */
};

struct job_shared {
	_Atomic uint64_t word[64]; /* for the case to use as it likes; zeroed */
	uint8_t bytes[1 << 16];
};

struct job_case {
	const char *name;
	uint32_t min_ranks;
	uint32_t max_ranks;
	void (*body)(struct job *job);
};

/* Runs the cases named in argv, or all, each with every number of ranks it
 * takes. Returns the exit status for main(): 77 when nothing was run. */
int job_main(int argc, char **argv, const struct job_case *cases, size_t count);

/* Joins over the sockets the parent made, or by name. */
oc_node *job_join(struct job *job);
oc_node *job_join_by_name(struct job *job);

/* This rank will be killed: the parent takes SIGKILL as its success. */
void job_die(void) __attribute__((noreturn));

/* Ends this rank with success and says why nothing was tested. */
void job_skip(const char *why) __attribute__((noreturn));

/* Reproducible random numbers: ONECOPY_TEST_SEED. */
uint64_t job_random(void);

void job_fail(const char *file, int line, const char *what, long long got, long long want)
	__attribute__((noreturn));

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			job_fail(__FILE__, __LINE__, #cond, 0, 1);                                 \
	} while (0)

#define CHECK_EQ(expr, want)                                                                       \
	do {                                                                                       \
		long long got_ = (long long)(expr), want_ = (long long)(want);                     \
		if (got_ != want_)                                                                 \
			job_fail(__FILE__, __LINE__, #expr, got_, want_);                          \
	} while (0)

#endif
