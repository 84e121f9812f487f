// SPDX-License-Identifier: BSD-3-Clause
/*
 * A process may end, and its PID go to another one, at any moment. So the process is held by a
 * descriptor of its own (pidfd), which also says by what number /proc knows it; if it lives at the
 * end, all that /proc has said before was about it. The file is closed by exec, and is no child's:
 * so who has it open, and mapped as such, has it as its arena now.
 */
#include "access/arena_find.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "heap/arena.h"

/* Linux 5.3 and 5.6, the same on every machine. */
#define PIDFD_OPEN  434
#define PIDFD_GETFD 438

#define DESCRIPTORS 256 /* that are looked at: the arena's is among the first */

/* A file read line by line, without allocating. */
struct lines {
	int fd;
	size_t used; /* of what is in the buffer, handed out */
	size_t full;
	char buffer[4096];
};

/* The next line without its newline, or NULL: at the end, and for one that is too long. */
static char *next_line(struct lines *lines)
{
	for (;;) {
		char *line = lines->buffer + lines->used;
		size_t left = lines->full - lines->used;
		char *end = memchr(line, '\n', left);
		ssize_t got;

		if (end) {
			*end = '\0';
			lines->used = (size_t)(end + 1 - lines->buffer);
			return line;
		}
		memmove(lines->buffer, line, left);
		lines->used = 0;
		lines->full = left;
		got = read(lines->fd, lines->buffer + left, sizeof(lines->buffer) - left);
		if (got <= 0)
			return NULL;
		lines->full += (size_t)got;
	}
}

static int open_lines(struct lines *lines, const char *path)
{
	lines->fd = open(path, O_RDONLY | O_CLOEXEC);
	lines->used = lines->full = 0;
	return lines->fd < 0 ? -errno : 0;
}

/* By what number /proc, which may be that of another PID namespace, knows the process. */
static int number_of(int process, uint32_t *number)
{
	struct lines lines;
	char path[64], *line;
	int known = 0, err;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", process);
	err = open_lines(&lines, path);
	if (err)
		return err;
	while ((line = next_line(&lines)))
		if (sscanf(line, "Pid: %d", &known) == 1)
			break;
	close(lines.fd);
	*number = (uint32_t)known;
	return known > 0 ? 0 : -ESRCH;
}

static bool is_own_users(uint32_t number)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", number);
	return !stat(path, &st) && st.st_uid == geteuid();
}

static bool is_named_so(uint32_t number, uint32_t descriptor)
{
	char path[64], name[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", number, descriptor);
	len = readlink(path, name, sizeof(name) - 1);
	if (len < 0)
		return false;
	name[len] = '\0';
	return strstr(name, OC_HEAP_FILE);
}

/* @found->fd, and what it is open on. */
static int fetch(int process, struct oc_arena_found *found)
{
	struct stat st;
	int err = -EPERM;

	found->fd = (int)syscall(PIDFD_GETFD, process, found->descriptor, 0);
	if (found->fd < 0)
		return -errno;
	if (!fstat(found->fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_size > 0) {
		found->file = (struct oc_file){.dev = st.st_dev, .ino = st.st_ino};
		found->size = (uint64_t)st.st_size;
		err = 0;
	}
	if (err)
		close(found->fd);
	return err;
}

/* Where its owner has all of the file, in as many mappings as there are: they follow each other. */
static int locate(struct oc_arena_found *found)
{
	struct lines lines;
	char path[32], *line;
	uint64_t there = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/maps", found->number);
	err = open_lines(&lines, path);
	if (err)
		return err;
	while (there < found->size && (line = next_line(&lines))) {
		unsigned long long from, to, off, ino;
		unsigned int major, minor;
		char how[5];

		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &from, &to, how, &off, &major,
			   &minor, &ino) != 7 ||
		    ino != found->file.ino || makedev(major, minor) != found->file.dev)
			continue;
		if (!there)
			found->base = from;
		if (off != there || from != found->base + there || strcmp(how, "rw-s"))
			break;
		there += to - from;
	}
	close(lines.fd);
	return there == found->size ? 0 : -ENOENT;
}

static bool lives(int process)
{
	struct pollfd ended = {.fd = process, .events = POLLIN};

	return !poll(&ended, 1, 0);
}

static int find(int process, struct oc_arena_found *found)
{
	int err = number_of(process, &found->number);

	if (err)
		return err;
	if (!is_own_users(found->number))
		return -EPERM;
	for (found->descriptor = 0; found->descriptor < DESCRIPTORS; found->descriptor++) {
		if (!is_named_so(found->number, found->descriptor))
			continue;
		err = fetch(process, found);
		if (err)
			return err;
		err = locate(found);
		if (!err && lives(process))
			return 0;
		close(found->fd);
		return err ? err : -ESRCH;
	}
	return -ENOENT;
}

/* A filter of system calls may kill for one that the program does not make itself. */
static bool is_filtered(void)
{
	return prctl(PR_GET_SECCOMP) > 0;
}

int oc_arena_find(pid_t pid, struct oc_arena_found *found)
{
	int process, cancel, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	process = is_filtered() ? -1 : (int)syscall(PIDFD_OPEN, pid, 0);
	err = process < 0 ? -EPERM : find(process, found);
	if (process >= 0)
		close(process);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

bool oc_arena_stands(const struct oc_arena_found *found)
{
	char path[64];
	struct stat st;
	int cancel;
	bool same;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", found->number, found->descriptor);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	same = !stat(path, &st) && st.st_dev == found->file.dev && st.st_ino == found->file.ino;
	pthread_setcancelstate(cancel, NULL);
	return same;
}
