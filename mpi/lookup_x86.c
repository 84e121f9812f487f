// SPDX-License-Identifier: BSD-3-Clause
/*
 * The answer of dlsym() depends on who asks, which the C library sees by the return address
 * (RTLD_NEXT, RTLD_DEFAULT). So ours is a few instructions that ask where to go, and go there by a
 * jump: the caller stays the caller. What is about neither MPI nor blocks of malloc() is not looked
 * at any further.
 */
#include "lookup.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "library.h"
#include "../preload/malloc.h"

typedef void *lookup(void *handle, const char *name);

__asm__(".pushsection .text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call oc_lookup_way\n"
	"	add $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	jmp *%rax\n"
	"	.cfi_endproc\n"
	".size dlsym, . - dlsym\n"
	".popsection\n");

lookup *oc_lookup_way(void *handle, const char *name) __attribute__((used));

/* Without a C library's dlsym() there is nothing to be found. */
static void *nothing(void *handle, const char *name)
{
	return NULL;
}

/* The next dlsym() after ours: the C library's, or that of another preload. */
static lookup *next_lookup(void)
{
	static lookup *next;
	lookup *found = __atomic_load_n(&next, __ATOMIC_RELAXED);
	void *symbol;

	if (__builtin_expect(!!found, 1))
		return found;
	/* Found by its version, for that is what dlvsym() is asked for; all C libraries have this
	 * one. */
	symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	found = nothing;
	if (symbol)
		memcpy(&found, &symbol, sizeof(found));
	__atomic_store_n(&next, found, __ATOMIC_RELAXED);
	return found;
}

void *oc_lookup_next(void *handle, const char *name)
{
	return next_lookup()(handle, name);
}

/* Our function of that name or NULL. It is PMPI_x for both names: in the MPI's library nobody finds
 * the MPI_x of a tool, who may be asking. */
static void *ours(const char *name)
{
	char ours_name[64];
	Dl_info here, there;
	void *handle, *found;

	if (snprintf(ours_name, sizeof(ours_name), "%s%s", name[0] == 'P' ? "" : "P", name) >=
		    (int)sizeof(ours_name) ||
	    !dladdr((void *)oc_lookup_way, &here))
		return NULL;
	handle = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	if (!handle)
		goto none;
	found = oc_lookup_next(handle, ours_name);
	dlclose(handle);
	if (found && dladdr(found, &there) && there.dli_fbase == here.dli_fbase)
		return found;
none:
	dlerror(); /* nobody has failed */
	return NULL;
}

/* For a caller that asks a library for a function of MPI. */
static void *lookup_mpi(void *handle, const char *name)
{
	void *found = oc_lookup_next(handle, name), *instead;

	/* The MPI may look its own functions up. */
	if (!found || !oc_library_holds(found) || oc_library_holds(__builtin_return_address(0)))
		return found;
	instead = ours(name);
	return instead ? instead : found;
}

/* For a caller that asks a library for what takes blocks of malloc(): ctypes' "libc.so.6", say. */
static void *lookup_taker(void *handle, const char *name)
{
	return oc_malloc_instead(name, oc_lookup_next(handle, name));
}

/* For a caller that asks whoever has it for a function that we alone have: behind us there is none,
 * and dlerror() says so. */
static void *lookup_behind(void *handle, const char *name)
{
	void *found = oc_lookup_next(RTLD_NEXT, name);

	/* Not by a jump: we are who asks. */
	__asm__ volatile("" : "+r"(found));
	return found;
}

static bool has(void *library, const char *name)
{
	bool found = library && oc_lookup_next(library, name);

	if (library)
		dlclose(library);
	return found;
}

/* Whether it is one of those calls of ours that came with MPI 4, and the MPI has none. */
static bool is_ours_alone(const char *name)
{
	static const char *const calls[] = {"Session_init", "Session_finalize",
					    "Comm_create_from_group",
					    "Intercomm_create_from_groups"};
	const char *call = strchr(name, '_') + 1;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(call, calls[i]))
			return !lookup_behind(RTLD_DEFAULT, name) && !has(oc_library_find(), name);
	return false;
}

lookup *oc_lookup_way(void *handle, const char *name)
{
	if (!name || handle == RTLD_NEXT)
		return next_lookup();
	if (strncmp(name, "MPI_", 4) != 0 && strncmp(name, "PMPI_", 5) != 0)
		return handle != RTLD_DEFAULT && oc_malloc_takes_blocks(name) ? lookup_taker
									      : next_lookup();
	if (handle != RTLD_DEFAULT)
		return lookup_mpi;
	return is_ours_alone(name) ? lookup_behind : next_lookup();
}
