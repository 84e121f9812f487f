/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_LIBRARY_H
#define OC_MPI_LIBRARY_H

/*
 * The MPI library among those that are loaded: by its soname, for it may have been loaded under
 * another name (libmpi.so, a link to it). Any thread; nothing is ever loaded.
 */

#include <stdbool.h>

/* A handle of the one of our ABI, or NULL. From then on this is the one that is meant. */
void *oc_library_find(void);

/* Whether an address is in it; before it has been found, in one that could be it. */
bool oc_library_holds(const void *address);

#endif
