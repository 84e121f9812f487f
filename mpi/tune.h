/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_TUNE_H
#define OC_MPI_TUNE_H

#include <stdbool.h>
#include <stddef.h>

#include "adapter.h"
#include "base/env.h"

/* Bytes from which stores may go past the caches, where nobody has agreed on others. */
#define OC_STREAM_FROM ((size_t)32 << 10)

/* From which size on each collective is served on a node of @ranks, and which stores it uses.
 * Called on one rank, which tells the others. */
void oc_tune_defaults(struct oc_agreed *agreed, const struct oc_env *env, int ranks);

/* True if stores of a call that writes @bytes on this rank may go past the caches:
 * whether they do is learned (lib/bytes/store_policy.h). */
bool oc_streams(size_t bytes);

#endif
