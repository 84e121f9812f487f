/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_HOOKED_H
#define OC_HOOKED_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The C library's madvise(). UCX, libfabric and Open MPI cache registrations of memory
 * with the network card, and must hear of pages that go away. UCX and Open MPI overwrite that
 * function's first instructions, so whatever gives pages back has to pass through it; and look it
 * up by its name, by which the preload's own, in which they would leave nothing of ours, is not
 * found (preload/memory.c). The kernel
 * tells libfabric (userfaultfd); its other way, memhooks, changes the tables by which programs
 * and libraries call that function, and hears of nothing that malloc does, the C library's or ours.
 * Their hooks take locks and do not allocate; nothing of ours may be locked meanwhile.
 */
int oc_hooked_madvise(void *p, size_t bytes, int advice);

/* They hear of [p, p + bytes), shared memory, as if it were unmapped. Nothing else
 * happens: the kernel refuses that advice for shared memory, after they were called. */
void oc_hooked_tell(void *p, size_t bytes);

/* Gives pages of shared memory back to the system: they are zeros then. Through the
 * mapping, as the file's descriptor may not be ours any more. What the program has
 * locked will be, as it is touched. False if the system refuses. */
bool oc_hooked_remove(void *p, size_t bytes);

#endif
