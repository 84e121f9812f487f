/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_KDEV_H
#define OC_KDEV_H

/*
 * /dev/onecopy, the kernel module's device (include/uapi/onecopy.h). A process
 * has one descriptor of it for all its nodes; kernel regions made through it
 * are gone with the process.
 *
 * Every function but oc_kdev_open() and oc_kdev_close() may be called from any
 * thread, and only while the caller holds an open. Errors are the module's,
 * see the header; -ENODEV when the descriptor is not usable.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/cursor.h"

/* What oc_kdev_region_create() gives. */
struct oc_kdev_region {
	uint64_t cookie;
	uint64_t generation;
	uint32_t slot; /* of its generation word */
};

/* A piece of a region shown in this process. */
struct oc_kdev_map {
	char *at; /* the piece's first byte */
	void *base;
	size_t length; /* of the mapping */
};

/*
 * Counted: the first opens the device, and the last oc_kdev_close() closes it.
 * Without the module that is one failed open(), tried once a process. -ENOENT,
 * -EACCES and the like from open(); -EPROTO another ABI. Any thread.
 */
int oc_kdev_open(void);
void oc_kdev_close(void);

/* One line on why oc_kdev_open() failed with @err. */
void oc_kdev_explain(int err, char *why, size_t size);

/* Whether the module sees that memory of a region was replaced. */
bool oc_kdev_tracks(void);
size_t oc_kdev_page_size(void);

/*
 * Pins memory of this process, tracked where the module can. @flags:
 * ONECOPY_REGION_READ, _WRITE, _WHOLE_PAGES. -E2BIG more segments than the
 * module takes; -ENOMEM, -EDQUOT, -ENOSPC limits; -EFAULT not to be pinned.
 */
int oc_kdev_region_create(const struct iovec *iov, size_t count, uint32_t flags,
			  struct oc_kdev_region *region);
void oc_kdev_region_destroy(uint64_t cookie);

/* Owner: true if the region's memory still is what was pinned. One load. False
 * for all regions where the module does not track. */
bool oc_kdev_region_fresh(const struct oc_kdev_region *region);

/* Anybody: 0 while the region exists and is not stale, else -ENOENT, -ESTALE. */
int oc_kdev_region_check(uint64_t cookie);

/* Moves at most @len bytes between the region and @local, which it advances.
 * Returns the bytes moved, fewer when the rest was refused, or -errno. */
ssize_t oc_kdev_copy(enum oc_direction direction, uint64_t cookie, uint64_t offset,
		     struct oc_cursor *local, size_t len);

/* Between two regions, neither of which need be the caller's. */
ssize_t oc_kdev_copy_between(uint64_t dst, uint64_t dst_offset, uint64_t src, uint64_t src_offset,
			     size_t len);

/*
 * Shows [offset, offset + length) of a region here. The memory stays readable
 * after the region became stale or its owner died, then as it was; after
 * oc_kdev_region_destroy() touching it raises SIGBUS.
 */
int oc_kdev_map(uint64_t cookie, uint64_t offset, size_t length, bool write,
		struct oc_kdev_map *map);
void oc_kdev_unmap(const struct oc_kdev_map *map);

#endif
