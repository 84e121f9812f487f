// SPDX-License-Identifier: BSD-3-Clause
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../preload/malloc.h"
#include "adapter.h"
#include "base/clock.h"
#include "base/env.h"
#include "discovery.h"
#include "heap/heap.h"
#include "print.h"

struct oc_record *oc_record;

static bool in_file;	       /* else it is to be printed */
static struct oc_record *kept; /* of sessions that have ended: more may follow */

static bool names_directory(const char *path)
{
	size_t len = strlen(path);

	return len && path[len - 1] == '/';
}

/* A file of its own in the directory; "<host>.<pid>" may be taken by a process of another PID
 * namespace. */
static int create_file(const char *directory, const char *host)
{
	char path[4096];
	int fd = -1;

	for (int turn = 0; turn < 100 && fd < 0; turn++) {
		int len = snprintf(path, sizeof(path), "%s%s.%d.%d", directory, host, (int)getpid(),
				   turn);

		if (len >= (int)sizeof(path))
			return -ENAMETOOLONG;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno != EEXIST)
			return -errno;
	}
	return fd < 0 ? -EEXIST : fd;
}

/* Written, not cut to length: there must be room for it. */
static int fill(int fd, const struct oc_record *record)
{
	const char *at = (const char *)record;
	size_t left = sizeof(*record);
	struct rlimit limit;

	/* Beyond it a write would be a signal. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < left)
		return -EFBIG;
	while (left) {
		ssize_t done = write(fd, at, left);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -ENOSPC;
		at += done;
		left -= (size_t)done;
	}
	return 0;
}

static int map_file(const char *directory, struct oc_record *record, struct oc_record **mapped)
{
	int fd = create_file(directory, record->host), err;
	void *at;

	if (fd < 0)
		return fd;
	err = fill(fd, record);
	if (err)
		goto close_file;
	at = mmap(NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		err = -errno;
	else
		*mapped = at;
close_file:
	close(fd);
	return err;
}

bool oc_record_open(void)
{
	static struct oc_record record;
	struct oc_record *mapped = NULL;
	const char *path = oc_env()->stats;
	int err;

	if (!path || oc_record)
		return false;
	if (kept) {
		__atomic_store_n(&oc_record, kept, __ATOMIC_RELEASE);
		return false;
	}
	record = (struct oc_record){0};
	memcpy(record.magic, OC_RECORD_MAGIC, sizeof(record.magic));
	record.pid = (uint32_t)getpid();
	record.job = oc_discovery_job();
	record.profile = oc_env()->profile;
	snprintf(record.version, sizeof(record.version), "%d.%d.0", ONECOPY_VERSION_MAJOR,
		 ONECOPY_VERSION_MINOR);
	gethostname(record.host, sizeof(record.host) - 1);
	in_file = names_directory(path);
	if (!in_file) {
		__atomic_store_n(&oc_record, &record, __ATOMIC_RELEASE);
		return true;
	}
	err = map_file(path, &record, &mapped);
	if (err)
		oc_note("no statistics of this rank: no file in %s: %s", path, strerror(-err));
	else
		__atomic_store_n(&oc_record, mapped, __ATOMIC_RELEASE);
	return !err;
}

static void copy_text(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "");
}

static const char *heap_state(void)
{
	const char *declined = oc_malloc_declined();

	return declined ? declined : oc_heap_reason();
}

void oc_record_start(void)
{
	const struct oc_node *node = oc_adapter.node;
	struct oc_record *record = oc_record;

	if (!record)
		return;
	if (oc_adapter.knows_types) {
		record->world_rank = (uint32_t)oc_adapter.world_rank;
		record->world_size = (uint32_t)oc_adapter.world_size;
		oc_pmpi_name(record->mpi, sizeof(record->mpi));
	}
	if (oc_adapter.active) {
		record->min = oc_adapter.agreed.min[OC_COLL_ALLREDUCE];
		record->credit = oc_adapter.agreed.credit;
	}
	if (node) {
		record->node_rank = node->rank;
		record->node_size = node->nranks;
		copy_text(record->heap, sizeof(record->heap), heap_state());
	}
	copy_text(record->idle, sizeof(record->idle), oc_adapter.idle);
	record->end_ns = oc_clock_ns();
	if (record != kept)
		record->start_ns = record->end_ns;
	__atomic_store_n(&record->state, OC_RECORD_RUNNING, __ATOMIC_RELEASE);
}

void oc_record_finish(void)
{
	struct oc_record *record = oc_record;
	int err;

	if (!record)
		return;
	__atomic_store_n(&oc_record, NULL, __ATOMIC_RELEASE);
	record->end_ns = oc_clock_ns();
	record->state = OC_RECORD_FINISHED;
	if (in_file) {
		kept = record;
		return;
	}
	err = oc_record_print(record, oc_env()->stats);
	if (err)
		oc_note("cannot write statistics to %s: %s", oc_env()->stats, strerror(-err));
}

void oc_record_abort(int code)
{
	struct oc_record *record = oc_record;

	if (!record)
		return;
	record->code = code;
	record->end_ns = oc_clock_ns();
	record->state = OC_RECORD_ABORTED;
}
