/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_FILE_H
#define OC_FILE_H

/*
 * Which file a descriptor of ours is open on. Programs that close every
 * descriptor they did not open exist, and the number may be somebody else's by
 * now: whoever keeps a descriptor asks before using it. The answer holds as long
 * as no other thread closes descriptors it does not own. While the file is
 * mapped, no other has its identity. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct oc_file {
	dev_t dev;
	ino_t ino;
};

/* What the system call that made it has returned, an error or a descriptor, above those of
 * standard input, output and error: a program may have been started without these (">&-"), and what
 * it prints would go into our file. The lower one is closed: before a lock is taken through it,
 * which that would drop (fcntl(2)). -1 with errno where there is no other. */
int oc_file_above(int fd);

/* 0 or -errno. */
int oc_file_identify(struct oc_file *file, int fd);

/* False for what is closed, reused or negative. errno is not touched. */
bool oc_file_is(const struct oc_file *file, int fd);

/* Closes @fd, unless it is not @file's any more: closing what the program has
 * put there would be worse than a descriptor lost. */
void oc_file_close(const struct oc_file *file, int fd);

/*
 * The beginning of a file of the kernel's as text: one read of at most @size - 1 bytes, which a NUL
 * ends. How many, or -errno; @text is ended then, too. Past whoever listens to the C library's
 * calls.
 */
long oc_file_read_text(const char *path, char *text, size_t size);

#endif
