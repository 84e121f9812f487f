/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_WORDS_H
#define OCK_WORDS_H

/*
 * What user space polls: an array of words, one a slot, in pages of the
 * module's that the file's mmap() shows. Pages are made when user space or a
 * copy first touches them, so that a large array costs nothing until used, are
 * charged to the memory cgroup, and stay as long as the array.
 */

#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/xarray.h>

/* What a slot looks like. */
enum ock_words_kind {
	OCK_WORDS_STATUS,     /* one byte: enum knem_status_e */
	OCK_WORDS_COMPLETION, /* struct onecopy_completion */
};

struct ock_words {
	enum ock_words_kind kind;
	u64 nr_slots;
	struct xarray pages; /* by page offset */
};

/* A word that can be written without fail; good as long as the array. */
struct ock_word {
	enum ock_words_kind kind;
	struct page *page;
	u32 offset;
};

void ock_words_init(struct ock_words *words, enum ock_words_kind kind, u64 nr_slots);

/* Nobody has it mapped any more. */
void ock_words_deinit(struct ock_words *words);

/* -ERANGE no such slot, -ENOMEM. */
int ock_words_get(struct ock_words *words, u32 slot, struct ock_word *word);

/* -EINVAL longer than they are (rounded to pages), from another offset, not shared. */
int ock_words_mmap(struct ock_words *words, struct vm_area_struct *vma);

/* Makes it pending. */
void ock_word_reset(const struct ock_word *word);

/* The outcome, with release order. */
void ock_word_write(const struct ock_word *word, int err, u64 copied);

#endif
