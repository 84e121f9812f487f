// SPDX-License-Identifier: BSD-3-Clause
/* The hooks of Open MPI's memory/patcher, which its transports' registration caches use. */
#include <mpi.h>

#include "hooks.h"

/* From headers that are not installed. */
#define OPAL_MEMORY_MUNMAP_SUPPORT 2
extern struct mca_base_framework_t opal_memory_base_framework;
int mca_base_framework_open(struct mca_base_framework_t *framework, int flags);
int opal_mem_hooks_support_level(void);
int opal_mem_hooks_register_release(void (*hook)(void *, size_t, void *, bool), void *arg);

static void hear(void *p, size_t bytes, void *arg, bool from_alloc)
{
	hooks_hear(p, bytes);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	MPI_Init(&argc, &argv);
	/* As a transport does that registers memory. */
	CHECK(!mca_base_framework_open(&opal_memory_base_framework, 0));
	CHECK(opal_mem_hooks_support_level() & OPAL_MEMORY_MUNMAP_SUPPORT);
	CHECK(!opal_mem_hooks_register_release(hear, NULL));
	hooks_check(argv[1]);
	MPI_Finalize();
	return 0;
}
