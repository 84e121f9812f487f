// SPDX-License-Identifier: BSD-3-Clause
/*
 * A limit of addresses (RLIMIT_AS) or of private memory (RLIMIT_DATA) that the program sets for
 * itself is about what the program has. Its arena and what it sees of its peers' are as large as
 * the memory, and counted by the kernel too, the one or the tables over it: a limit below that
 * would let it allocate nothing any more. So the kernel is told as much more, and the program what
 * it has said. A limit that is there before the arena is made bounds that: base/space.h,
 * heap/arena.c.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw_call.h"
#include "base/space.h"
#include "heap/heap.h"

#define EXPORT __attribute__((visibility("default")))

/* Those over an arena are less than that part of it (heap/span.c and others). */
#define TABLES 256

static struct kept {
	bool busy; /* somebody reads or writes what follows */
	bool any;
	struct rlimit said; /* by the program */
	struct rlimit told; /* to the kernel */
} addresses, data;

static int ask(pid_t pid, int resource, const struct rlimit *set, struct rlimit *old)
{
	return (int)oc_raw_call(SYS_prlimit64, pid, resource, (long)set, (long)old, 0, 0);
}

static rlim_t least(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

static rlim_t with(rlim_t limit, size_t taken)
{
	return limit > RLIM_INFINITY - taken ? RLIM_INFINITY : limit + taken;
}

static int limit_own(struct kept *kept, int resource, size_t taken, const struct rlimit *set,
		     struct rlimit *old)
{
	struct rlimit now, seen, told;

	if (ask(0, resource, NULL, &now))
		return -1;
	seen = kept->any && !memcmp(&now, &kept->told, sizeof(now)) ? kept->said : now;
	if (set) {
		told = (struct rlimit){with(set->rlim_cur, taken), with(set->rlim_max, taken)};
		/* What it may set without privileges, it may. */
		if (set->rlim_max <= seen.rlim_max)
			told.rlim_max = least(told.rlim_max, now.rlim_max);
		if (set->rlim_cur <= set->rlim_max)
			told.rlim_cur = least(told.rlim_cur, told.rlim_max);
		if (ask(0, resource, &told, NULL))
			return -1;
		kept->said = *set;
		kept->told = told;
		kept->any = true;
	}
	if (old)
		*old = seen;
	return 0;
}

/* What of a resource is ours. */
static size_t taken_of(int resource)
{
	if (resource == RLIMIT_AS)
		return oc_space_taken();
	return resource == RLIMIT_DATA
		       ? __atomic_load_n(&oc_heap_range.size, __ATOMIC_ACQUIRE) / TABLES
		       : 0;
}

/* No lock that a child of fork() could find taken for ever: who comes in between, in another
 * thread, has the kernel's word. */
static int limit(pid_t pid, int resource, const struct rlimit *set, struct rlimit *old)
{
	struct kept *kept = resource == RLIMIT_AS ? &addresses : &data;
	size_t taken = taken_of(resource);
	int err;

	if (!taken || (pid && pid != getpid()) ||
	    __atomic_exchange_n(&kept->busy, true, __ATOMIC_ACQUIRE))
		return ask(pid, resource, set, old);
	err = limit_own(kept, resource, taken, set, old);
	__atomic_store_n(&kept->busy, false, __ATOMIC_RELEASE);
	return err;
}

/* By their names in the C library: its header makes one of each two. */
EXPORT int limit_get(int resource, struct rlimit *now) __asm__("getrlimit");
EXPORT int limit_get_64(int resource, struct rlimit *now) __asm__("getrlimit64");
EXPORT int limit_set(int resource, const struct rlimit *set) __asm__("setrlimit");
EXPORT int limit_set_64(int resource, const struct rlimit *set) __asm__("setrlimit64");
EXPORT int limit_of(pid_t pid, int resource, const struct rlimit *set,
		    struct rlimit *old) __asm__("prlimit");
EXPORT int limit_of_64(pid_t pid, int resource, const struct rlimit *set,
		       struct rlimit *old) __asm__("prlimit64");

int limit_get(int resource, struct rlimit *now)
{
	return limit(0, resource, NULL, now);
}

int limit_get_64(int resource, struct rlimit *now)
{
	return limit(0, resource, NULL, now);
}

int limit_set(int resource, const struct rlimit *set)
{
	return limit(0, resource, set, NULL);
}

int limit_set_64(int resource, const struct rlimit *set)
{
	return limit(0, resource, set, NULL);
}

int limit_of(pid_t pid, int resource, const struct rlimit *set, struct rlimit *old)
{
	return limit(pid, resource, set, old);
}

int limit_of_64(pid_t pid, int resource, const struct rlimit *set, struct rlimit *old)
{
	return limit(pid, resource, set, old);
}
