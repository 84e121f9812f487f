/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ENV_H
#define OC_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Huge pages that the heap asks for itself. */
enum oc_env_thp {
	OC_ENV_THP_AUTO,   /* where they cost no more than small ones */
	OC_ENV_THP_ALWAYS, /* whatever they cost */
	OC_ENV_THP_NEVER,
};

/* The ONECOPY_* variables, read once. docs/design.md has the table. */
struct oc_env {
	bool off;
	bool profile; /* and off: what would be served is to be measured */
	bool heap_off;
	bool static_off;   /* the program's static data stays private */
	bool messages_off; /* point-to-point is the MPI's alone */
	bool verbose;
	enum oc_env_thp thp;
	uint32_t mech;	   /* OC_MECH_* allowed */
	size_t min;	   /* 0: per-collective defaults */
	const char *stats; /* path or NULL; points into the environment */
};

/* Any thread; never NULL. Does not allocate: malloc() may call it. */
const struct oc_env *oc_env(void);

/*
 * Whether a tool of valgrind runs the program that has malloc and free for itself. Most take free()
 * and its like of every library, by address: mimalloc's have the same, and its blocks would be
 * freed as others. They are to see the program's blocks anyway. Of those that replace nothing there
 * is the core's preload alone.
 */
bool oc_env_is_watched(void);

/* Notes from now on begin with the rank, of MPI_COMM_WORLD or the like, that has them. */
void oc_note_rank(int rank);

#define OC_NOTE_LINE 480
#define OC_NOTE_KEPT ((size_t)4 << 10)

/* One line on stderr, "onecopy: ...", when ONECOPY_VERBOSE is set. Does not
 * allocate. */
void oc_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* From now on notes are kept, as far as there is room, to be said for several ranks at once. */
void oc_note_keep(void);

/* Ends that. What was kept, each with its newline, to @text[OC_NOTE_KEPT]; how many bytes. */
size_t oc_note_kept(char *text);

/* Says a note of @len bytes now, whatever is set: "onecopy: @who: ...". */
void oc_note_for(const char *who, const char *text, size_t len);

#endif
