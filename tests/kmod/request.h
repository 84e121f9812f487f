/* SPDX-License-Identifier: BSD-3-Clause */
/* Every request of /dev/onecopy as data: a valid argument, and what of it may be wrong. */
#ifndef REQUEST_H
#define REQUEST_H

#include "dev.h"

union argument {
	uint32_t size;
	uint32_t word[16];
	struct onecopy_info info;
	struct onecopy_region_create create;
	struct onecopy_region_destroy destroy;
	struct onecopy_region_info region;
	struct onecopy_copy copy;
	struct onecopy_map map;
	struct onecopy_async_setup setup;
	struct onecopy_cancel cancel;
	uint8_t space[8192];
};

struct request {
	const char *name;
	unsigned long command;
	uint32_t size;
	/* A valid one, in memory that is zero. May make a file or a region for it. */
	void (*fill)(union argument *a);
	int good;	     /* errno of a valid one */
	uint32_t flags;	     /* known ones */
	uint8_t reserved[4]; /* offsets of __u32; 0 ends */
};

/* Ended by one without a name. */
extern const struct request requests[];

/* What valid requests are made of; some open it anew. */
extern int request_fd;

void requests_init(void);

#endif
