/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of /dev/onecopy. */
#ifndef DEV_H
#define DEV_H

#include "kmod.h"
#include "onecopy.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#define DV_RO (ONECOPY_REGION_READ)
#define DV_RW (ONECOPY_REGION_READ | ONECOPY_REGION_WRITE)

/* The case is skipped where the device does not exist. */
int dv_open(void);
int dv_open_as(int flags);

struct onecopy_info dv_info(int fd);
/* Skips the case without this ONECOPY_FEATURE_*. */
void dv_need(int fd, uint64_t feature, const char *what);

struct onecopy_segment dv_seg(const void *p, size_t bytes);

/* As ioctl: 0, or -1 and errno; then nothing was written back. */
int dv_create_try(int fd, const struct onecopy_segment *segs, uint32_t nr, uint32_t flags,
		  uint64_t *cookie);
/* Of one segment; must succeed. */
uint64_t dv_create(int fd, const void *p, size_t bytes, uint32_t flags);
int dv_destroy(int fd, uint64_t cookie);
int dv_region_info(int fd, uint64_t cookie, struct onecopy_region_info *info);

/* Local memory against a region: bytes moved, or -1 and errno. */
ssize_t dv_read(int fd, uint64_t cookie, uint64_t off, void *p, size_t bytes);
ssize_t dv_write(int fd, uint64_t cookie, uint64_t off, const void *p, size_t bytes);
/* Region to region. */
ssize_t dv_copy(int fd, uint64_t src, uint64_t src_off, uint64_t dst, uint64_t dst_off,
		uint64_t length);

int dv_map_try(int fd, uint64_t cookie, uint64_t off, uint64_t bytes, uint32_t flags,
	       struct onecopy_map *map);
/* Both steps; where byte @off of the region is, or MAP_FAILED and errno. */
void *dv_map(int fd, uint64_t cookie, uint64_t off, uint64_t bytes, uint32_t flags);

/* Completion words; must succeed. Must be called once a file. */
volatile struct onecopy_completion *dv_async(int fd, uint32_t slots, int eventfd);
/* Local memory from or to a region, later. 0, or -1 and errno. */
int dv_read_async(int fd, uint64_t cookie, uint64_t off, void *p, size_t bytes, uint32_t slot,
		  uint32_t flags);
int dv_write_async(int fd, uint64_t cookie, uint64_t off, const void *p, size_t bytes,
		   uint32_t slot, uint32_t flags);
int dv_cancel(int fd, uint32_t slot);
/* Waits until the word leaves PENDING; its error, 0 for DONE. */
uint32_t dv_wait(volatile struct onecopy_completion *word);

#endif
