// SPDX-License-Identifier: BSD-3-Clause
/*
 * libmimalloc defines malloc() and operator new, so linking to it would replace
 * the program's allocator. dlopen(RTLD_LOCAL) keeps those names to itself.
 *
 * Two families are served: 2.x (Debian 12), where an arena is named by an int,
 * and 3.x, where it is a pointer. Until 3.2 a heap belongs to the thread that
 * made it; from 3.2 on any thread may allocate from any heap, and heaps are not
 * deleted with their thread.
 *
 * Up to 3.1 (Debian 13 has 3.0.1) mimalloc 3 may forget that a page has aligned blocks when
 * the page goes from one thread to another, which is repaired in upstream's commit 5d98acad,
 * and then frees such a block at the wrong place: blocks overlap. There it is not asked for
 * any: oc_mi_memalign().
 *
 * 3.6 (Debian's unstable) is not served: in a child of fork its handler, and its destructor at
 * exit, go through records of the arena, where a child has its blocks and nothing else (fork.c).
 * The last before it that was looked at is 3.4.
 */
#include "heap/mimalloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memfd.h"

/* That comes with the library this is in, as in a Python wheel. Not by the name of
 * libmimalloc: whoever in the program needs that one shall get its own. */
#define BUNDLED "libonecopy-mimalloc.so"

/* How blocks of a page and more are aligned by themselves, at present. */
#define NATURAL ((size_t)128)

/* Of 3.x: what it reserves of addresses for itself, which is not in the arena, in KiB. */
#define OPTION_RESERVE	23
#define RESERVE_DEFAULT (1L << 20)
#define RESERVE		(64L << 10)

#define TOO_NEW 30500
#define NO_KEY	(-1L)

struct oc_mi oc_mi;

static union {
	int number;
	void *pointer;
} arena_id;
static bool arena_by_pointer;

static bool (*manage_memory)(void *base, size_t size, bool committed, bool pinned, bool zero,
			     int numa, bool exclusive, void *id);
static union {
	void *symbol;
	struct oc_mi_heap *(*by_number)(int id);
	struct oc_mi_heap *(*by_pointer)(void *id);
} heap_new;

static void *(*of_thread)(void); /* what mimalloc has for this thread; makes it, if there is none */
static long thread_key = NO_KEY;

/* mi_version() has one digit of the minor and the patch each at first, then one and two, then two
 * of each: 209 is 2.0.9, 315 is 3.1.5, 3207 is 3.2.7, 30400 is 3.4.0. */
static int version_minor_of_3(int version)
{
	return version < 1000 ? version / 10 % 10 : version / 100 % 10;
}

/* A relative name may have been relative to another directory. */
static void *open_bundled(int mode)
{
	Dl_info self;
	char path[PATH_MAX];
	size_t directory;

	if (!dladdr(&oc_mi, &self) || self.dli_fname[0] != '/')
		return NULL;
	directory = strrchr(self.dli_fname, '/') - self.dli_fname + 1;
	if (directory + sizeof(BUNDLED) > sizeof(path))
		return NULL;
	memcpy(path, self.dli_fname, directory);
	memcpy(path + directory, BUNDLED, sizeof(BUNDLED));
	return dlopen(path, mode);
}

/* The file that @lib was loaded from once more, as one of its own, which is another library to the
 * dynamic linker. */
static void *open_copy(void *lib, int mode)
{
	const struct link_map *map;
	char path[64];
	void *copy;
	int fd;

	if (dlinfo(lib, RTLD_DI_LINKMAP, &map))
		return NULL;
	fd = oc_memfd_copy("onecopy-mimalloc", map->l_name);
	if (fd < 0)
		return NULL;
	/* With a process id, for that name stays the library's. */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	copy = dlopen(path, mode);
	close(fd);
	return copy;
}

/*
 * One that is nobody else's: a program that has mimalloc as its own allocator would go on with
 * memory of the arena whose threads have ended, which a forked child has not. Such a one's
 * functions would also be called by a second library: RTLD_DEEPBIND, which sanitizers do not like,
 * is for that alone.
 */
static void *open_own(const char **why)
{
	static const char *const names[] = {"libmimalloc.so.2", "libmimalloc.so.2.0",
					    "libmimalloc.so.3"};
	enum { NAMES = sizeof(names) / sizeof(names[0]) };
	void *there = NULL, *lib;
	int mode = RTLD_LOCAL | RTLD_NOW;

	for (size_t i = 0; !there && i < NAMES; i++)
		there = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
	if (there || dlsym(RTLD_DEFAULT, "mi_free"))
		mode |= RTLD_DEEPBIND;
	lib = open_bundled(mode);
	if (!lib && there)
		lib = open_copy(there, mode);
	for (size_t i = 0; !lib && !there && i < NAMES; i++)
		lib = dlopen(names[i], mode);
	*why = there ? "the program has libmimalloc itself, and a copy can not be loaded"
		     : "no libmimalloc.so.2 or .3: install Debian's libmimalloc2.0 or libmimalloc3";
	if (there)
		dlclose(there);
	return lib;
}

/* A GiB, for little more than its own records: limits of addresses count it. What the user says is
 * not changed. */
static void reserve_less(void *lib)
{
	long (*get)(int option) = dlsym(lib, "mi_option_get");
	void (*set)(int option, long value) = dlsym(lib, "mi_option_set");

	if (get && set && get(OPTION_RESERVE) == RESERVE_DEFAULT)
		set(OPTION_RESERVE, RESERVE);
}

int oc_mi_load(const char **why)
{
	int (*version_of)(void);
	void *lib = open_own(why);
	int version;

	if (!lib)
		return -ENOENT;
	version_of = dlsym(lib, "mi_version");
	version = version_of ? version_of() : 0;
	manage_memory = dlsym(lib, "mi_manage_os_memory_ex");
	heap_new.symbol = dlsym(lib, "mi_heap_new_in_arena");
	oc_mi.malloc = dlsym(lib, "mi_heap_malloc");
	oc_mi.zalloc = dlsym(lib, "mi_heap_zalloc");
	oc_mi.memalign = dlsym(lib, "mi_heap_malloc_aligned");
	oc_mi.free = dlsym(lib, "mi_free");
	oc_mi.usable_size = dlsym(lib, "mi_usable_size");
	of_thread = dlsym(lib, "mi_theap_get_default");
	if (!of_thread)
		of_thread = dlsym(lib, "mi_heap_get_default");
	if (version < 209 || !manage_memory || !heap_new.symbol || !oc_mi.malloc || !oc_mi.zalloc ||
	    !oc_mi.memalign || !oc_mi.free || !oc_mi.usable_size) {
		*why = "libmimalloc is too old: exclusive arenas came with 2.0.9";
		dlclose(lib);
		return -ENOENT;
	}
	if (version >= TOO_NEW) {
		*why = "libmimalloc is too new: from 3.5 on children of fork may die of it";
		dlclose(lib);
		return -ENOENT;
	}
	arena_by_pointer = version >= 300;
	if (arena_by_pointer)
		reserve_less(lib);
	oc_mi.heap_is_shared = arena_by_pointer && version_minor_of_3(version) >= 2;
	if (arena_by_pointer && !oc_mi.heap_is_shared)
		oc_mi.memalign = NULL;
	oc_mi.arena_max = arena_by_pointer ? (size_t)16 << 30 : SIZE_MAX & ~(OC_MI_SEGMENT - 1);
	return 0;
}

int oc_mi_manage(void *base, size_t size)
{
	/* 3.x purges what is not pinned; 2.x never purges what came committed, and
	 * refuses pinned arenas to threads that are in their first segment. */
	bool pinned = arena_by_pointer;

	if (!manage_memory(base, size, true, pinned, true, -1, true, &arena_id))
		return -ENOMEM;
	return 0;
}

void *oc_mi_memalign(struct oc_mi_heap *heap, size_t bytes, size_t align, size_t *before)
{
	size_t room = align > NATURAL ? align : 0;

	*before = 0;
	if (oc_mi.memalign)
		return oc_mi.memalign(heap, bytes, align);
	for (;; room = align) {
		char *block = oc_mi.malloc(heap, bytes + room);

		if (!block)
			return NULL;
		*before = -(uintptr_t)block & (align - 1);
		if (*before <= room)
			return block + *before;
		oc_mi.free(block);
	}
}

/* The thread-specific key whose destructor is mimalloc's, by what this thread has there. */
static void find_thread_key(void)
{
	long keys = sysconf(_SC_THREAD_KEYS_MAX);
	void *its = of_thread ? of_thread() : NULL;

	for (long key = 0; its && key < keys; key++)
		if (pthread_getspecific((pthread_key_t)key) == its) {
			__atomic_store_n(&thread_key, key, __ATOMIC_RELAXED);
			return;
		}
}

struct oc_mi_heap *oc_mi_heap_create(void)
{
	struct oc_mi_heap *it = arena_by_pointer ? heap_new.by_pointer(arena_id.pointer)
						 : heap_new.by_number(arena_id.number);

	if (it && __atomic_load_n(&thread_key, __ATOMIC_RELAXED) == NO_KEY)
		find_thread_key();
	return it;
}

void oc_mi_forget_thread(void)
{
	long key = __atomic_load_n(&thread_key, __ATOMIC_RELAXED);

	if (key != NO_KEY)
		pthread_setspecific((pthread_key_t)key, NULL);
}
