// SPDX-License-Identifier: BSD-3-Clause
#include "next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The C library's own, as __libc_free(). */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);

static void *first_malloc(size_t bytes)
{
	oc_next_resolve();
	return oc_next.malloc(bytes);
}

static void *first_calloc(size_t n, size_t bytes)
{
	oc_next_resolve();
	return oc_next.calloc(n, bytes);
}

static void *first_realloc(void *p, size_t bytes)
{
	oc_next_resolve();
	return oc_next.realloc(p, bytes);
}

static void first_free(void *p)
{
	oc_next_resolve();
	oc_next.free(p);
}

static void *first_memalign(size_t align, size_t bytes)
{
	oc_next_resolve();
	return oc_next.memalign(align, bytes);
}

static void *first_aligned_alloc(size_t align, size_t bytes)
{
	oc_next_resolve();
	return oc_next.aligned_alloc(align, bytes);
}

static int first_posix_memalign(void **out, size_t align, size_t bytes)
{
	oc_next_resolve();
	return oc_next.posix_memalign(out, align, bytes);
}

static void *first_valloc(size_t bytes)
{
	oc_next_resolve();
	return oc_next.valloc(bytes);
}

static void *first_pvalloc(size_t bytes)
{
	oc_next_resolve();
	return oc_next.pvalloc(bytes);
}

static size_t first_usable_size(void *p)
{
	oc_next_resolve();
	return oc_next.usable_size(p);
}

struct oc_next oc_next = {
	.malloc = first_malloc,
	.calloc = first_calloc,
	.realloc = first_realloc,
	.free = first_free,
	.memalign = first_memalign,
	.aligned_alloc = first_aligned_alloc,
	.posix_memalign = first_posix_memalign,
	.valloc = first_valloc,
	.pvalloc = first_pvalloc,
	.usable_size = first_usable_size,
};

const void *oc_next_module_of(const void *symbol)
{
	Dl_info info;

	return symbol && dladdr(symbol, &info) ? info.dli_fbase : NULL;
}

/* The function of that name that comes after ours; true if it is in @module, or that is
 * not known. */
static bool find(void *pointer, const char *name, const void *module)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found)
		memcpy(pointer, &found, sizeof(found));
	return found && (!module || oc_next_module_of(found) == module);
}

static void *calloc_by_malloc(size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	p = oc_next.malloc(bytes);
	return p ? memset(p, 0, bytes) : NULL;
}

static void *memalign_by_posix(size_t align, size_t bytes)
{
	void *p;
	int err = oc_next.posix_memalign(&p, align < sizeof(p) ? sizeof(p) : align, bytes);

	if (!err)
		return p;
	errno = err;
	return NULL;
}

static int posix_by_memalign(void **out, size_t align, size_t bytes)
{
	int saved = errno;
	void *p;

	if (align % sizeof(void *) || !align || (align & (align - 1)))
		return EINVAL;
	p = oc_next.memalign(align, bytes);
	errno = saved;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

static void *aligned_by_memalign(size_t align, size_t bytes)
{
	return oc_next.memalign(align, bytes);
}

static void *memalign_by_aligned(size_t align, size_t bytes)
{
	return oc_next.aligned_alloc(align, bytes);
}

static void *valloc_by_memalign(size_t bytes)
{
	return oc_next.memalign(4096, bytes);
}

static void *pvalloc_by_memalign(size_t bytes)
{
	size_t whole = (bytes + 4095) & ~(size_t)4095;

	if (whole < bytes) {
		errno = ENOMEM;
		return NULL;
	}
	return oc_next.memalign(4096, whole ? whole : 4096);
}

static size_t unknown_size(void *p)
{
	return 0;
}

/* In the first call of any of them, which the dynamic linker or the C library makes
 * while there is one thread. dlsym() does not allocate, unless it fails. */
void oc_next_resolve(void)
{
	bool memalign, aligned, posix;
	const void *module;
	void *symbol;

	if (oc_next.malloc != first_malloc)
		return;
	oc_next.malloc = __libc_malloc;
	oc_next.calloc = __libc_calloc;
	oc_next.realloc = __libc_realloc;
	oc_next.free = __libc_free;
	find(&oc_next.malloc, "malloc", NULL);
	memcpy(&symbol, &oc_next.malloc, sizeof(symbol));
	module = oc_next_module_of(symbol);
	find(&oc_next.realloc, "realloc", module);
	find(&oc_next.free, "free", module);
	if (!find(&oc_next.calloc, "calloc", module))
		oc_next.calloc = calloc_by_malloc;
	if (!find(&oc_next.usable_size, "malloc_usable_size", module))
		oc_next.usable_size = unknown_size;

	memalign = find(&oc_next.memalign, "memalign", module);
	posix = find(&oc_next.posix_memalign, "posix_memalign", module);
	aligned = find(&oc_next.aligned_alloc, "aligned_alloc", module);
	if (!memalign && posix)
		oc_next.memalign = memalign_by_posix;
	else if (!memalign && aligned)
		oc_next.memalign = memalign_by_aligned;
	memalign |= posix || aligned;
	if (memalign && !posix)
		oc_next.posix_memalign = posix_by_memalign;
	if (memalign && !aligned)
		oc_next.aligned_alloc = aligned_by_memalign;
	if (!find(&oc_next.valloc, "valloc", module) && memalign)
		oc_next.valloc = valloc_by_memalign;
	if (!find(&oc_next.pvalloc, "pvalloc", module) && memalign)
		oc_next.pvalloc = pvalloc_by_memalign;
}
