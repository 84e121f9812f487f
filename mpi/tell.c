// SPDX-License-Identifier: BSD-3-Clause
#include "tell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <onecopy/onecopy.h>

#include "../preload/malloc.h"
#include "base/env.h"

/* What one rank has to say. */
struct notes {
	int rank;
	unsigned int used;
	char text[OC_NOTE_KEPT];
};

static bool has_line(const struct notes *notes, const char *line, size_t len)
{
	for (unsigned int at = 0; at < notes->used;) {
		const char *it = notes->text + at;
		size_t whole = (size_t)((char *)memchr(it, '\n', notes->used - at) - it);

		if (whole == len && !memcmp(it, line, len))
			return true;
		at += (unsigned int)whole + 1;
	}
	return false;
}

/* "rank 3", or "ranks 0-2,5": those of @all[@count] that have the line. */
static void name_ranks(const struct notes *all, int count, const char *line, size_t len, char *who,
		       size_t size)
{
	const char *comma = "";
	bool several = false;
	size_t used;

	for (int i = 1; i < count && !several; i++)
		several = has_line(&all[i], line, len);
	used = (size_t)snprintf(who, size, several ? "ranks " : "rank ");
	for (int i = 0; i < count && used < size; i++) {
		int first = i;

		if (!has_line(&all[i], line, len))
			continue;
		while (i + 1 < count && all[i + 1].rank == all[i].rank + 1 &&
		       has_line(&all[i + 1], line, len))
			i++;
		used += (size_t)snprintf(who + used, size - used, "%s%d", comma, all[first].rank);
		if (i > first && used < size)
			used += (size_t)snprintf(who + used, size - used, "-%d", all[i].rank);
		comma = ",";
	}
}

/* Each line at the first rank that has it. */
static void say(const struct notes *all, int count)
{
	char who[128];

	for (int i = 0; i < count; i++) {
		const char *line = all[i].text, *end = line + all[i].used;

		while (line < end) {
			size_t len =
				(size_t)((char *)memchr(line, '\n', (size_t)(end - line)) - line);
			bool said = false;

			for (int j = 0; j < i && !said; j++)
				said = has_line(&all[j], line, len);
			if (!said) {
				name_ranks(all + i, count - i, line, len, who, sizeof(who));
				oc_note_for(who, line, len);
			}
			line += len + 1;
		}
	}
}

void oc_tell_notes(MPI_Comm node_comm, int world_rank)
{
	struct notes mine = {.rank = world_rank}, *all = NULL;
	int rank, size, in[2], out[2] = {true, false}, bytes = (int)sizeof(mine);

	mine.used = (unsigned int)oc_note_kept(mine.text);
	if (pmpi()->Comm_rank(node_comm, &rank) || pmpi()->Comm_size(node_comm, &size))
		return;
	if (rank == 0)
		all = malloc((size_t)size * sizeof(*all));
	in[0] = !mine.used;
	in[1] = rank || all;
	if (pmpi()->Allreduce(in, out, 2, oc_abi.integer, oc_abi.land, node_comm) || out[0])
		goto out;
	if (!out[1])
		say(&mine, 1);
	else if (!pmpi()->Gather(&mine, bytes, oc_abi.byte, all, bytes, oc_abi.byte, 0,
				 node_comm) &&
		 all)
		say(all, size);
out:
	free(all);
}

/* The mechanisms by which this rank reaches all of the node's ranks. */
static uint32_t usable(const struct oc_node *node)
{
	uint32_t mech = UINT32_MAX;

	for (uint32_t i = 0; i < node->nranks; i++)
		mech &= atomic_load(&node->peers[i].gets) & atomic_load(&node->peers[i].puts);
	mech |= OC_MECH_STAGED;
	return oc_malloc_declined() ? mech : mech | OC_MECH_HEAP;
}

static void list_mechanisms(uint32_t mech, char *text, size_t size)
{
	static const char *const names[OC_MECH_COUNT] = {OC_MECH_NAMES};
	size_t used = 0;

	text[0] = '\0';
	for (int m = 0; m < OC_MECH_COUNT; m++)
		if (mech & (1u << m) && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 names[m]);
}

static void tell_use(void)
{
	const struct oc_agreed *agreed = &oc_adapter.agreed;
	const struct oc_node *node = oc_adapter.node;
	const char *declined = oc_malloc_declined();
	char mpi[96], host[64] = "", mech[64];

	oc_pmpi_name(mpi, sizeof(mpi));
	gethostname(host, sizeof(host) - 1);
	if (!node) {
		oc_note("%d.%d.0 with %s on %s: measures, serves nothing", ONECOPY_VERSION_MAJOR,
			ONECOPY_VERSION_MINOR, mpi, host);
		return;
	}
	list_mechanisms(usable(node) & (oc_env()->mech | OC_MECH_STAGED), mech, sizeof(mech));
	oc_note("%d.%d.0 with %s on %s: %u of %d ranks served, %u CPUs%s", ONECOPY_VERSION_MAJOR,
		ONECOPY_VERSION_MINOR, mpi, host, node->nranks, oc_adapter.world_size, node->ncpus,
		node->oversubscribed ? ", which they share" : "");
	oc_note("moves by %s; collectives from %llu bytes on (Bcast %llu), "
		"communicators from the fourth call on, or the first of %llu bytes",
		mech, (unsigned long long)agreed->min[OC_COLL_ALLREDUCE],
		(unsigned long long)agreed->min[OC_COLL_BCAST], (unsigned long long)agreed->credit);
	oc_note("shared heap: %s", declined ? declined : "for blocks of 16 KiB and more");
}

void oc_tell_start(void)
{
	if (oc_env()->verbose)
		tell_use();
}
