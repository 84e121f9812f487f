/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_PEERS_H
#define OC_TEST_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "segment/node.h"

#define PEERS_FILES 4

/* A node in which rank 0 is this process and the others are arenas without a process,
 * all of one size, of which each PEERS_FILES-th is the same. */
struct peers {
	struct oc_node node;
	int fd[PEERS_FILES];
};

/* With the windows made, and every arena open. */
bool peers_create(struct peers *peers, uint32_t nranks, uint64_t arena_size);
void peers_destroy(struct peers *peers);

/* Bytes that this process has mapped of the arenas, and whether all of that is left out
 * of core files and not inherited. */
uint64_t peers_mapped(bool *apart);

/* A number of /proc/self/status, in bytes. */
uint64_t peers_status(const char *name);

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

#endif
