/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_BUFFER_H
#define OC_MPI_BUFFER_H

/* Users' buffers and types as sequences of bytes. */

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

#include "bytes/layout.h"
#include "scratch.h"

/* One side of a call as a sequence of bytes: the user's memory, in one piece or in pieces that are
 * long enough, else a packed copy in the shared heap. */
struct oc_buffer {
	char *at;
	size_t bytes;
	const struct oc_layout *layout; /* the pieces; at is where the first element begins */
	struct oc_typemap *map;		/* whose layout that is; NULL: one's own */
	void *user;			/* packed: where the data came from or goes */
	size_t count;			/* packed: elements of type */
	MPI_Datatype type;
	bool packed;
	struct oc_scratch copy;
};

/* 0 or an MPI error code that nobody has been told of. */
int oc_buffer_send(struct oc_buffer *buffer, const void *user, size_t count, MPI_Datatype type);
/* to send from a copy in any case */
int oc_buffer_copy(struct oc_buffer *buffer, const void *user, size_t count, MPI_Datatype type);
int oc_buffer_recv(struct oc_buffer *buffer, void *user, size_t count, MPI_Datatype type);
/* As it is, for memory that is never touched here, too. False, and nothing to be closed, where it
 * had better be packed. */
bool oc_buffer_as_is(struct oc_buffer *buffer, void *user, size_t count, MPI_Datatype type);
/* Packs one of a packed copy's blocks of @count elements: what is in place. */
int oc_buffer_pack_block(struct oc_buffer *buffer, int block, size_t count);
/* oc_buffer_close() of what is packed or in pieces. */
int oc_buffer_release(struct oc_buffer *buffer, bool unpack);
/* Unpacks what was received if @unpack, and frees the copy. A failure. */
static inline int oc_buffer_close(struct oc_buffer *buffer, bool unpack)
{
	return buffer->packed || buffer->layout ? oc_buffer_release(buffer, unpack) : MPI_SUCCESS;
}

/* True if elements of @type follow each other without gaps, in order. */
bool oc_type_contiguous(MPI_Datatype type);

/* Finds out whether packing is concatenation in this MPI. 0 or -EOPNOTSUPP. */
int oc_buffer_setup(void);

/* Packs (or unpacks) elements between a user's layout and plain bytes. 0 or an MPI
 * error code that nobody has been told of. */
int oc_convert(void *user, char *packed, size_t count, MPI_Datatype type, bool pack);

#endif
