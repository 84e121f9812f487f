/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of /dev/knem as its clients make them: no field is set that they leave alone. */
#ifndef KNEM_H
#define KNEM_H

#include "kmod.h"
#include "knem_io.h"

#include <sys/mman.h>

#define KN_RW (PROT_READ | PROT_WRITE)
/* What clients leave in fields the module must not read. */
#define KN_GARBAGE 0xdeadbeef

/* A context; the case is skipped where the device does not exist. */
int kn_open(void);
int kn_open_as(int flags);

/* As ioctl: 0, or -1 and errno. */
int kn_create_try(int fd, const struct knem_cmd_param_iovec *iov, uint32_t n, uint32_t prot,
		  uint32_t flags, knem_cookie_t *cookie);
/* Of one segment; must succeed. */
knem_cookie_t kn_create(int fd, const void *p, size_t bytes, uint32_t prot, uint32_t flags);
int kn_destroy(int fd, knem_cookie_t cookie);

/*
 * One contiguous piece of local memory against a region: knem_status_e, or -1
 * and errno. write as in the ABI: from local memory to the region.
 */
int kn_inline(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes, bool write,
	      uint32_t flags);
/* The same with a slot of the status array. */
int kn_inline_async(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes, bool write,
		    uint32_t flags, uint32_t slot);
/* Reads; must be accepted and succeed. */
void kn_get(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes);
void kn_put(int fd, knem_cookie_t cookie, uint64_t off, void *p, size_t bytes);
/* Region to region. */
int kn_copy(int fd, knem_cookie_t src, uint64_t src_off, knem_cookie_t dst, uint64_t dst_off,
	    uint32_t flags, uint32_t slot);
int kn_copy_bounded(int fd, knem_cookie_t src, uint64_t src_off, knem_cookie_t dst,
		    uint64_t dst_off, uint64_t length, uint32_t flags, uint32_t slot);

/* The status array; must succeed. */
volatile knem_status_t *kn_array(int fd, size_t slots);
/* Waits for a slot to change from PENDING and returns it. */
int kn_wait(volatile knem_status_t *slot);

struct knem_cmd_param_iovec kn_iov(const void *p, size_t bytes);
/* A DMA channel: the feature bit. */
bool kn_has_dma(int fd);

#endif
