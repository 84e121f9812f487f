// SPDX-License-Identifier: BSD-3-Clause
/* An allocator without memalign, valloc, pvalloc and malloc_usable_size, which aborts
 * when it is handed a block of somebody else's. It never uses memory again. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POOL  ((size_t)4 << 30)
#define MAGIC 0x6d61676963ull

struct head {
	uint64_t magic;
	size_t bytes;
};

static char *pool;
static size_t used;

static void *carve(size_t align, size_t bytes)
{
	size_t at;

	if (!pool)
		pool = mmap(NULL, POOL, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (align < 16)
		align = 16;
	if (bytes > POOL / 2 || align > POOL / 8)
		return NULL;
	at = __atomic_fetch_add(&used, bytes + sizeof(struct head) + align, __ATOMIC_RELAXED);
	if (at > POOL / 2)
		return NULL;
	at = (at + sizeof(struct head) + align - 1) & ~(align - 1);
	((struct head *)(pool + at))[-1] = (struct head){MAGIC, bytes};
	return pool + at;
}

static struct head *head_of(void *p)
{
	struct head *head = (struct head *)p - 1;

	if (!pool || (char *)p < pool || (char *)p > pool + POOL || head->magic != MAGIC)
		abort();
	return head;
}

void *malloc(size_t bytes)
{
	return carve(16, bytes);
}

void *calloc(size_t n, size_t size)
{
	return carve(16, n * size);
}

void free(void *p)
{
	if (p)
		head_of(p)->magic = 0;
}

void *realloc(void *p, size_t bytes)
{
	void *q = carve(16, bytes);

	if (p && q) {
		size_t had = head_of(p)->bytes;

		memcpy(q, p, had < bytes ? had : bytes);
		free(p);
	}
	return q;
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	void *p = carve(align, bytes);

	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return carve(align, bytes);
}
