// SPDX-License-Identifier: BSD-3-Clause
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static const struct link_map *meant;

/* What its dynamic section says that a library is called, or NULL. */
static const char *soname_of(const ElfW(Dyn) * dynamic, ElfW(Addr) base)
{
	ElfW(Addr) names = 0, at = 0;

	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_STRTAB)
			names = dynamic->d_un.d_ptr;
		else if (dynamic->d_tag == DT_SONAME)
			at = dynamic->d_un.d_val;
	}
	if (!names || !at)
		return NULL;
	/* The dynamic linker has made it an address, on most machines. */
	return (const char *)(names < base ? base + names : names) + at;
}

static bool is_mpi(const char *soname, const char *path)
{
	static const char *const begins[] = {OC_ABI_LIBRARIES};
	const char *base = strrchr(path, '/');

	if (!soname)
		soname = base ? base + 1 : path;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(soname, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static int match(struct dl_phdr_info *info, size_t size, void *name)
{
	const ElfW(Dyn) *dynamic = NULL;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	/* The program has no name, the kernel's page is no file. */
	if (!info->dlpi_name[0] || !strchr(info->dlpi_name, '/') ||
	    !is_mpi(soname_of(dynamic, info->dlpi_addr), info->dlpi_name))
		return 0;
	*(char **)name = strdup(info->dlpi_name);
	return 1;
}

void *oc_library_find(void)
{
	struct link_map *map;
	char *name = NULL;
	void *handle = NULL;

	if (dl_iterate_phdr(match, &name) && name)
		handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
	free(name);
	if (handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map))
		__atomic_store_n(&meant, map, __ATOMIC_RELEASE);
	return handle;
}

bool oc_library_holds(const void *address)
{
	const struct link_map *known = __atomic_load_n(&meant, __ATOMIC_ACQUIRE);
	struct link_map *map = NULL;
	Dl_info info;

	if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
		return false;
	return known ? map == known : is_mpi(soname_of(map->l_ld, map->l_addr), map->l_name);
}
