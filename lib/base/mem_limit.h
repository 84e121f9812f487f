/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MEM_LIMIT_H
#define OC_MEM_LIMIT_H

#include <stddef.h>

/*
 * Bytes of memory for this process and all that shares its limits: the machine's,
 * or less if a cgroup (v2) it is in has less. SIZE_MAX when that cannot be said.
 * Does not allocate; any thread.
 */
size_t oc_mem_limit(void);

#endif
