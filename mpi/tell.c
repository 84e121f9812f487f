// SPDX-License-Identifier: BSD-3-Clause
#include "tell.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <onecopy/onecopy.h>

#include "env.h"
#include "../preload/malloc.h"

#define REASON 256

void oc_tell_unwilling(MPI_Comm node_comm, int rank, const char *why)
{
	char first[REASON] = "", mine[REASON];

	snprintf(mine, sizeof(mine), "%s", why ? why : "");
	if (rank == 0)
		memcpy(first, mine, sizeof(first));
	if (pmpi()->Bcast(first, REASON, oc_abi.byte, 0, node_comm))
		return;
	if (rank && why && strcmp(first, mine) != 0)
		oc_note("not used: %s", why);
}

/* The mechanisms by which this rank reaches all of the node's ranks. */
static uint32_t usable(const struct oc_node *node)
{
	uint32_t mech = OC_MECH_MAP | OC_MECH_KCOPY | OC_MECH_CMA;

	for (uint32_t i = 0; i < node->nranks; i++) {
		const struct oc_node_peer *peer = &node->peers[i];

		mech &= peer->kernel | OC_MECH_CMA;
		if (!peer->cma_read || !peer->cma_write)
			mech &= ~(uint32_t)OC_MECH_CMA;
	}
	mech |= OC_MECH_STAGED;
	return oc_malloc_declined() ? mech : mech | OC_MECH_HEAP;
}

static void list_mechanisms(uint32_t mech, char *text, size_t size)
{
	static const char *const names[OC_MECH_COUNT] = {"heap", "map", "kcopy", "cma", "staged"};
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
	oc_note("moves by %s; collectives from %llu bytes on, communicators after %llu bytes of "
		"calls",
		mech, (unsigned long long)agreed->min[OC_COLL_BCAST],
		(unsigned long long)agreed->credit);
	oc_note("shared heap: %s", declined ? declined : "for blocks of 16 KiB and more");
}

void oc_tell_start(void)
{
	if (!oc_env()->verbose)
		return;
	if (oc_adapter.idle)
		oc_note("not used: %s", oc_adapter.idle);
	else
		tell_use();
}
