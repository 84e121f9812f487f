/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PROCVM_KNOWN_H
#define OC_PROCVM_KNOWN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether [p, p + bytes) is certain to be mapped here, readable and writable, without asking the
 * kernel: in the shared heap, in the static data of the program and the libraries that it
 * began with, as long as it has unloaded none, or in the part of the main thread's stack that is
 * in use. False where that cannot be told. What a program itself has unmapped or protected in
 * there is not noticed.
 * Any thread.
 */
bool oc_procvm_known(const void *p, size_t bytes);

#endif
