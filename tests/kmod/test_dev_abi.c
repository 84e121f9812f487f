// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy: the form of requests. One table; every request too short, too
 * long, with each reserved member and each unknown flag set.
 */
#include "dev.h"

#include <fcntl.h>
#include <stdio.h>

union argument {
	uint32_t size;
	uint32_t word[16];
	struct onecopy_info info;
	struct onecopy_region_create create;
	struct onecopy_region_destroy destroy;
	struct onecopy_region_info region;
	struct onecopy_copy copy;
	struct onecopy_map map;
	struct onecopy_async_setup setup;
	struct onecopy_cancel cancel;
	uint8_t space[8192];
};

/* What valid requests are about. */
static int fd;
static uint64_t region;
static uint8_t *memory;
static struct onecopy_segment segment;

static void fill_info(union argument *a)
{
	a->size = sizeof(a->info);
}

static void fill_create(union argument *a)
{
	a->create = (struct onecopy_region_create){
		.size = sizeof(a->create),
		.flags = DV_RW,
		.segments = (uintptr_t)&segment,
		.nr_segments = 1,
	};
}

static void fill_destroy(union argument *a)
{
	a->destroy = (struct onecopy_region_destroy){
		.size = sizeof(a->destroy),
		.cookie = dv_create(fd, memory, 8, DV_RW),
	};
}

static void fill_region(union argument *a)
{
	a->region = (struct onecopy_region_info){.size = sizeof(a->region), .cookie = region};
}

static void fill_copy(union argument *a)
{
	a->copy = (struct onecopy_copy){
		.size = sizeof(a->copy),
		.source = region,
		.local = (uintptr_t)&segment,
		.nr_local = 1,
		.length = 10,
	};
}

static void fill_map(union argument *a)
{
	a->map = (struct onecopy_map){
		.size = sizeof(a->map),
		.flags = ONECOPY_MAP_READ,
		.cookie = region,
		.length = km_page(),
	};
}

static void set_up(union argument *a)
{
	a->setup = (struct onecopy_async_setup){
		.size = sizeof(a->setup),
		.nr_slots = 8,
		.eventfd = -1,
	};
}

/* Once a file. */
static void fill_setup(union argument *a)
{
	KM_OK(close(fd));
	fd = dv_open();
	set_up(a);
}

/* Nothing to take back: ENOENT is how a good one ends. */
static void fill_cancel(union argument *a)
{
	set_up(a);
	if (ioctl(fd, ONECOPY_IOC_ASYNC_SETUP, a))
		KM_EQ(errno, EBUSY);
	a->cancel = (struct onecopy_cancel){.size = sizeof(a->cancel), .slot = 1};
}

static const struct request {
	const char *name;
	unsigned long command;
	uint32_t size;
	void (*fill)(union argument *a);
	int good;	     /* errno of a valid one */
	uint32_t flags;	     /* known ones */
	uint8_t reserved[4]; /* offsets of __u32; 0 ends */
} requests[] = {
	{"INFO", ONECOPY_IOC_INFO, 56, fill_info, 0, 0, {offsetof(struct onecopy_info, reserved)}},
	{"REGION_CREATE",
	 ONECOPY_IOC_REGION_CREATE,
	 48,
	 fill_create,
	 0,
	 0x7f,
	 {offsetof(struct onecopy_region_create, reserved),
	  offsetof(struct onecopy_region_create, reserved2)}},
	{"REGION_DESTROY", ONECOPY_IOC_REGION_DESTROY, 16, fill_destroy, 0, 0, {0}},
	{"REGION_INFO", ONECOPY_IOC_REGION_INFO, 48, fill_region, 0, 0, {0}},
	{"COPY", ONECOPY_IOC_COPY, 72, fill_copy, 0, 0x7, {0}},
	{"MAP", ONECOPY_IOC_MAP, 72, fill_map, 0, 0x3, {0}},
	{"ASYNC_SETUP", ONECOPY_IOC_ASYNC_SETUP, 16, fill_setup, 0, 0, {0}},
	{"CANCEL",
	 ONECOPY_IOC_CANCEL,
	 16,
	 fill_cancel,
	 ENOENT,
	 0,
	 {offsetof(struct onecopy_cancel, reserved)}},
};
#define REQUESTS (sizeof(requests) / sizeof(*requests))

/* Those of the others are in the table. */
_Static_assert(sizeof(struct onecopy_segment) == 16, "onecopy_segment");
_Static_assert(sizeof(struct onecopy_completion) == 16, "onecopy_completion");

static void prepare(void)
{
	int owner = dv_open();

	fd = dv_open();
	memory = km_pages(4 * km_page());
	segment = dv_seg(memory, 64);
	region = dv_create(owner, km_pages(4 * km_page()), 4 * km_page(), DV_RW);
}

/* A valid argument, nothing behind it. */
static void fresh(const struct request *r, union argument *a)
{
	memset(a, 0, sizeof(*a));
	r->fill(a);
}

/* The request ends with this errno, 0 for success. */
static void expect(const struct request *r, union argument *a, int err, const char *what)
{
	int got = ioctl(fd, r->command, a) == -1 ? errno : 0;

	if (got != err)
		km_fail(__FILE__, __LINE__, "%s %s: %s, not %s", r->name, what, strerror(got),
			strerror(err));
}

static void sizes(void)
{
	union argument a;

	prepare();
	for (const struct request *r = requests; r < requests + REQUESTS; r++) {
		fresh(r, &a);
		KM_EQ(a.size, r->size);
		expect(r, &a, r->good, "valid");
		for (uint32_t size = 0; size < r->size; size++) {
			fresh(r, &a);
			a.size = size;
			expect(r, &a, EINVAL, "too short");
		}
		for (uint32_t more = 1; more < 600; more += more < 20 ? 1 : 97) {
			fresh(r, &a);
			a.size = r->size + more;
			a.space[a.size - 1] = 1;
			expect(r, &a, E2BIG, "too long");
			fresh(r, &a);
			a.size = r->size + more;
			/* Behind the size is none of its business. */
			a.space[a.size] = 1;
			expect(r, &a, r->good, "longer, zero");
		}
		fresh(r, &a);
		a.size = UINT32_MAX;
		expect(r, &a, E2BIG, "absurd");
	}
}

static void reserved(void)
{
	union argument a;

	prepare();
	for (const struct request *r = requests; r < requests + REQUESTS; r++) {
		for (const uint8_t *off = r->reserved; *off; off++) {
			for (int bit = 0; bit < 32; bit += 31) {
				fresh(r, &a);
				a.word[*off / 4] = 1u << bit;
				expect(r, &a, EINVAL, "reserved");
			}
		}
		for (int bit = 0; bit < 32; bit++) {
			if (r->flags & 1u << bit)
				continue;
			fresh(r, &a);
			a.word[1] |= 1u << bit;
			expect(r, &a, EINVAL, "unknown flag");
		}
	}
}

/* The argument at the edge of what is mapped, and behind it; read-only for an answer. */
static void inaccessible(void)
{
	const size_t page = km_page();
	uint8_t *edge;

	prepare();
	edge = km_pages(2 * page);
	KM_OK(munmap(edge + page, page));
	for (const struct request *r = requests; r < requests + REQUESTS; r++) {
		union argument a, *at = (void *)(edge + page - r->size);

		fresh(r, &a);
		memcpy(at, &a, r->size);
		expect(r, at, r->good, "at the edge");
		r->fill(&a);
		at = (void *)(edge + page - r->size + 4);
		memcpy(at, &a, r->size - 4);
		expect(r, at, EFAULT, "over the edge");
		expect(r, NULL, EFAULT, "null");
		expect(r, (void *)(uintptr_t)0xffffffff81000000, EFAULT, "kernel address");
	}
	for (const struct request *r = requests; r < requests + REQUESTS; r++) {
		bool answers =
			r->fill != fill_destroy && r->fill != fill_setup && r->fill != fill_cancel;
		long long live = km_counter("live_regions");

		if (!answers)
			continue;
		KM_OK(mprotect(edge, page, PROT_READ | PROT_WRITE));
		r->fill((void *)edge);
		KM_OK(mprotect(edge, page, PROT_READ));
		expect(r, (void *)edge, EFAULT, "read-only");
		/* A region whose cookie nobody got is not there. */
		KM_EQ(km_counter("live_regions"), live);
	}
}

static void commands(void)
{
	static const uint8_t known[] = {0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47};
	union argument a;

	prepare();
	memset(&a, 0, sizeof(a));
	for (int nr = 0; nr < 256; nr++) {
		if (memchr(known, nr, sizeof(known)))
			continue;
		a.size = 64;
		KM_ERR(ioctl(fd, _IO(ONECOPY_IOC_MAGIC, nr), &a), ENOTTY);
	}
	for (const struct request *r = requests; r < requests + REQUESTS; r++) {
		r->fill(&a);
		KM_ERR(ioctl(fd, r->command | _IOW(0, 0, uint32_t), &a), ENOTTY);
		KM_ERR(ioctl(fd, r->command ^ 0x100, &a), ENOTTY);
	}
}

static void modes(void)
{
	static const int wrong[] = {O_RDONLY, O_WRONLY};
	union argument a;

	prepare();
	for (const struct request *r = requests; r < requests + REQUESTS; r++) {
		for (int i = 0; i < 2; i++) {
			int keep, other;

			r->fill(&a);
			keep = fd;
			other = fd = dv_open_as(wrong[i]);
			expect(r, &a, EBADF, "not for reading and writing");
			fd = keep;
			close(other);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "sizes", .run = sizes},
		{.name = "reserved", .run = reserved},
		{.name = "inaccessible", .run = inaccessible},
		{.name = "commands", .run = commands},
		{.name = "modes", .run = modes},
		{0},
	};

	return km_main(cases, argc, argv);
}
