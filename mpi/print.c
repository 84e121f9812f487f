// SPDX-License-Identifier: BSD-3-Clause
/* A rank's record as a line of JSON: docs/stats.md has the keys. */
#include "print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Written in one piece, so that ranks do not mix. */
struct line {
	char text[128 << 10]; /* a cell is never longer than 240 bytes */
	size_t used;
};

static void __attribute__((format(printf, 2, 3))) put(struct line *line, const char *fmt, ...)
{
	size_t left = sizeof(line->text) - line->used;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(line->text + line->used, left, fmt, args);
	va_end(args);
	if (len > 0)
		line->used += (size_t)len < left ? (size_t)len : left - 1;
}

/* As a string of JSON: what an MPI or a host is called is not ours. */
static void put_text(struct line *line, const char *name, const char *text)
{
	put(line, "\"%s\":\"", name);
	for (; *text; text++)
		if ((unsigned char)*text >= ' ' && *text != '"' && *text != '\\')
			put(line, "%c", *text);
	put(line, "\",");
}

static bool is_served(const struct oc_record_cell *cell)
{
	return !strcmp(cell->outcome, "served");
}

/* One entry for each collective, whatever the size and the reason. */
static void put_calls(struct line *line, const struct oc_record *record)
{
	const struct oc_record_cell *cell = record->cell, *end = cell + OC_RECORD_CELLS;
	const char *comma = "";

	put(line, "\"calls\":{");
	for (; cell < end; cell++) {
		uint64_t served = 0, passed = 0, bytes = 0;
		const struct oc_record_cell *it = record->cell;

		while (it < cell && strcmp(it->call, cell->call) != 0)
			it++;
		if (!cell->call[0] || it < cell)
			continue;
		for (; it < end; it++) {
			if (strcmp(it->call, cell->call) != 0)
				continue;
			*(is_served(it) ? &served : &passed) += it->calls;
			bytes += is_served(it) ? it->bytes : 0;
		}
		put(line, "%s\"%s\":{\"served\":%llu,\"passed\":%llu,\"bytes\":%llu}", comma,
		    cell->call, (unsigned long long)served, (unsigned long long)passed,
		    (unsigned long long)bytes);
		comma = ",";
	}
	put(line, "},");
}

static void put_cells(struct line *line, const struct oc_record *record)
{
	const struct oc_record_cell *cell = record->cell;
	const char *comma = "";

	put(line, "\"cells\":[");
	for (; cell < record->cell + OC_RECORD_CELLS; cell++) {
		if (!cell->call[0])
			continue;
		put(line, "%s{\"call\":\"%s\",\"outcome\":\"%s\",\"size\":%llu,", comma, cell->call,
		    cell->outcome, (unsigned long long)cell->size);
		put(line, "\"calls\":%llu,\"bytes\":%llu,\"data\":%llu,\"ns\":%llu}",
		    (unsigned long long)cell->calls, (unsigned long long)cell->bytes,
		    (unsigned long long)cell->data, (unsigned long long)cell->ns);
		comma = ",";
	}
	put(line, "]}\n");
}

/* Calls and bytes under each of some names. */
static void put_counts(struct line *line, const char *key, const char *const *names, int n,
		       const uint64_t *calls, const uint64_t *bytes)
{
	put(line, "\"%s\":{", key);
	for (int i = 0; i < n; i++)
		put(line, "%s\"%s\":{\"calls\":%llu,\"bytes\":%llu}", i ? "," : "", names[i],
		    (unsigned long long)calls[i], (unsigned long long)bytes[i]);
	put(line, "},");
}

int oc_record_print(const struct oc_record *record, const char *path)
{
	static const char *const mechanisms[OC_MECH_COUNT] = {OC_MECH_NAMES};
	static const char *const transfers[OC_TRANSFER_COUNT] = {OC_TRANSFER_NAMES};
	static struct line line;
	ssize_t done;
	int fd;

	line.used = 0;
	put(&line, "{\"rank\":%u,\"nranks\":%u,", record->node_rank,
	    record->node_size ? record->node_size : 1);
	put_text(&line, "version", record->version);
	put_text(&line, "idle", record->idle);
	put_text(&line, "heap", record->heap);
	put_calls(&line, record);
	put_counts(&line, "mech", mechanisms, OC_MECH_COUNT, record->mech_calls,
		   record->mech_bytes);
	put_counts(&line, "messages", mechanisms, OC_MECH_COUNT, record->message_calls,
		   record->message_bytes);
	put(&line, "\"helped\":%llu,", (unsigned long long)record->helped_bytes);
	put_counts(&line, "transfers", transfers, OC_TRANSFER_COUNT, record->transfer_calls,
		   record->transfer_bytes);
	put(&line, "\"refused\":%llu,\"state\":%u,\"job\":\"%016llx\",\"pid\":%u,\"code\":%d,",
	    (unsigned long long)record->refused, record->state, (unsigned long long)record->job,
	    record->pid, record->code);
	put(&line, "\"world_rank\":%u,\"world_size\":%u,\"profile\":%u,", record->world_rank,
	    record->world_size, record->profile);
	put_text(&line, "host", record->host);
	put_text(&line, "mpi", record->mpi);
	put(&line, "\"start\":%llu,", (unsigned long long)record->start_ns);
	put(&line, "\"min\":%llu,\"credit\":%llu,\"ns\":%llu,", (unsigned long long)record->min,
	    (unsigned long long)record->credit,
	    (unsigned long long)(record->end_ns - record->start_ns));
	put_cells(&line, record);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	done = write(fd, line.text, line.used);
	close(fd);
	return done == (ssize_t)line.used ? 0 : done < 0 ? -errno : -ENOSPC;
}
