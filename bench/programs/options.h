/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

/* collbench's command line. */

#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "collective.h"

#define MAX_LIST 64
#define WAYS	 2

struct options {
	const struct collective *ops[MAX_LIST];
	size_t nops;
	size_t sizes[MAX_LIST];
	size_t nsizes;
	size_t cache;	/* bytes of last level cache on the node */
	double seconds; /* of one repetition, preparing included */
	int reps;
	bool warm;
	bool per_call;
	const struct functions *ways[WAYS]; /* as linked, beneath */
	size_t nways;
	enum memory memory;
	size_t most_slots; /* 0: any number */
};

/* After MPI_Init(). What it does not understand ends all ranks, with a word from rank 0. */
void options_parse(struct options *opt, int argc, char **argv);

/* Ends all ranks, which call it together; @detail may be NULL. */
_Noreturn void options_refuse(const char *what, const char *detail);

#endif
