/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_TELL_H
#define OC_MPI_TELL_H

/* What ONECOPY_VERBOSE says at the start: once for each node, naming the ranks. */

#include "adapter.h"

/* Collective over the ranks of a node: says the notes that they have kept (oc_note_keep()). */
void oc_tell_notes(MPI_Comm node_comm, int world_rank);

/* By the first rank of a node that is served: what is used. */
void oc_tell_start(void);

#endif
