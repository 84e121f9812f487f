/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

/*
 * Regions of /dev/onecopy for programs that measure. Each call ends the
 * program with a message when it fails.
 */

#include <stddef.h>
#include <stdint.h>

int device_open(void);

/* Readable and writable by others. */
uint64_t device_create(int fd, void *memory, size_t length);
void device_destroy(int fd, uint64_t cookie);

/* Into @to, or from @source to the region @destination with @to NULL. */
void device_copy(int fd, uint64_t source, void *to, size_t length);
void device_copy_between(int fd, uint64_t source, uint64_t destination, size_t length);

/* The whole region, at an address where huge entries can be used, or cannot. */
void *device_map(int fd, uint64_t cookie, size_t length, int huge);

/* Private memory, filled, of huge pages if there are any and @huge, else of small ones. */
void *memory_make(size_t length, int huge);

/* Nanoseconds of the monotonic clock. */
double now(void);

/* "name,pages,bytes,value,unit" */
void figure(const char *name, const char *pages, size_t bytes, double value, const char *unit);

#endif
