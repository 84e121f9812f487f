// SPDX-License-Identifier: BSD-3-Clause
/*
 * Programs that are no MPI's, but are linked to what MPIs stand on: UCX, libfabric. These end long
 * messages by process_vm_readv(2) and its twin, too.
 */
#include <dlfcn.h>

#include "../preload/malloc.h"
#include "../procvm/procvm.h"
#include "base/env.h"
#include "heap/heap.h"
#include "tune.h"

static uint64_t calls[OC_MECH_COUNT], bytes[OC_MECH_COUNT], helped;

static bool is_linked_to_one(void)
{
	static const char *const names[] = {"ucp_get_version", "uct_query_components",
					    "fi_getinfo"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (dlsym(RTLD_DEFAULT, names[i]))
			return !dlsym(RTLD_DEFAULT, "MPI_Get_version");
	return false;
}

static __attribute__((constructor)) void start(void)
{
	const struct oc_procvm_counts counts = {calls, bytes, &helped};

	if (oc_env()->off || oc_env()->messages_off || oc_malloc_declined() || !is_linked_to_one())
		return;
	oc_malloc_activate();
	if (oc_heap_fd() < 0)
		oc_note("not used: %s", oc_heap_reason());
	else
		oc_procvm_begin_alone(OC_STREAM_FROM, &counts);
}

static __attribute__((destructor)) void tell(void)
{
	unsigned int heap = (unsigned int)__builtin_ctz(OC_MECH_HEAP);
	unsigned int cma = (unsigned int)__builtin_ctz(OC_MECH_CMA);

	if (calls[heap] || calls[cma])
		oc_note("messages: %llu copies by a pointer (%llu bytes), %llu by the kernel "
			"(%llu bytes)",
			(unsigned long long)calls[heap], (unsigned long long)bytes[heap],
			(unsigned long long)calls[cma], (unsigned long long)bytes[cma]);
}
