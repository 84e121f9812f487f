/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_THREAD_H
#define OC_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Runs @run(@arg) in a thread of the library's own that gets none of the program's signals and has
 * @stack bytes for itself; the C library takes thread-local data out of a thread's stack. 0 or an
 * error number. Any thread. */
int oc_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg);

#endif
