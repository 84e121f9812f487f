/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MEMFD_H
#define OC_MEMFD_H

#include <stdint.h>

/*
 * A file in memory that peers may map: of @bytes zeros for ever, because it is
 * sealed, so none of them can make the others fault by cutting it short. Closed
 * by exec. The descriptor belongs to the caller. -EFBIG when RLIMIT_FSIZE forbids
 * it, otherwise what the system said. Any thread.
 */
int oc_memfd_create(const char *name, uint64_t bytes);

/* A file in memory with what is in another, to be executed or loaded. Closed by exec; the caller's.
 * A failure of the system's. Any thread. */
int oc_memfd_copy(const char *name, const char *path);

#endif
