/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What random calls are made of: descriptors, cookies that mostly exist,
 * memory that is mostly there, and arguments that are mostly well-formed.
 * The same seed makes the same calls; what they meet depends on the others.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include "dev.h"
#include "knem.h"

enum fuzz_device { FUZZ_ONECOPY, FUZZ_KNEM, FUZZ_DEVICES };

#define FUZZ_FILES    4
#define FUZZ_COOKIES  256
#define FUZZ_SEGMENTS 8
#define FUZZ_MAPPINGS 8
#define FUZZ_HUGE     (2u << 21)

/* Seen by all workers. */
struct fuzz_shared {
	volatile uint64_t cookie[FUZZ_DEVICES][FUZZ_COOKIES];
	volatile unsigned long calls, done;
};

struct fuzz {
	uint64_t seed;
	struct fuzz_shared *shared;
	int fd[FUZZ_DEVICES][FUZZ_FILES];
	uint8_t *arena;
	uint8_t *huge; /* FUZZ_HUGE bytes of huge pages; NULL where the kernel has none */
	struct {
		uint8_t *at;
		size_t bytes;
	} mapping[FUZZ_MAPPINGS];
	/* Of the call being made; both devices' segments look the same. */
	struct onecopy_segment segs[FUZZ_SEGMENTS];
	unsigned long calls, done;
};

/* Memory the calls are about, none but holes beside it, and files of both devices. */
void fuzz_init(struct fuzz *f, uint64_t seed, struct fuzz_shared *shared);
/* The files: regions stay as long as any process has them open. */
void fuzz_close(struct fuzz *f);
/* No byte beside the declared memory was touched. */
void fuzz_check(const struct fuzz *f);

uint64_t fuzz_below(struct fuzz *f, uint64_t n);
/* True once in n. */
bool fuzz_one_in(struct fuzz *f, uint64_t n);
int fuzz_fd(struct fuzz *f, enum fuzz_device device);
uint64_t fuzz_cookie(struct fuzz *f, enum fuzz_device device);
void fuzz_keep(struct fuzz *f, enum fuzz_device device, uint64_t cookie);
/* Near 0, near a page, near the end, anywhere. */
uint64_t fuzz_offset(struct fuzz *f);
/* The address of f->segs, newly filled; how many in *nr. Rarely neither is true. */
uint64_t fuzz_segments(struct fuzz *f, uint32_t *nr);
/* Some pages of the declared memory, now and then of the huge ones. */
uint8_t *fuzz_pages(struct fuzz *f, size_t *bytes);
/* Flags of the mask, rarely others. */
uint32_t fuzz_flags(struct fuzz *f, uint32_t mask);
/* Now and then breaks a word of the argument. Pointers only become ones that lead nowhere. */
void fuzz_mutate(struct fuzz *f, void *arg, size_t bytes);
/* An ioctl; when it fails, its errno must be one of the list, ended by 0. */
int fuzz_call(struct fuzz *f, int fd, unsigned long command, void *arg, const int *errnos);
/* A mapping made, and one more or less touched. */
void fuzz_map(struct fuzz *f, int fd, size_t bytes, uint64_t offset);
void fuzz_unmap(struct fuzz *f);
/* Closes a file, which other workers may still have, and opens another. */
void fuzz_reopen(struct fuzz *f, enum fuzz_device device);

/* One random call of either device. */
void fuzz_onecopy(struct fuzz *f);
void fuzz_knem(struct fuzz *f);

#endif
