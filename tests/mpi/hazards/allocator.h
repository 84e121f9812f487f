/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_ALLOCATOR_H
#define OC_TEST_ALLOCATOR_H

#include <stddef.h>

/* A block that free() takes, as C++'s operator new makes them in some allocators. */
void *allocator_new(size_t bytes);

#endif
