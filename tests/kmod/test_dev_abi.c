// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy: the form of requests. One table; every request too short, too
 * long, with each reserved member and each unknown flag set.
 */
#include "request.h"

#include <fcntl.h>
#include <stdio.h>

/* Those of the others are in the table. */
_Static_assert(sizeof(struct onecopy_segment) == 16, "onecopy_segment");
_Static_assert(sizeof(struct onecopy_completion) == 16, "onecopy_completion");

/* A valid argument, nothing behind it. */
static void fresh(const struct request *r, union argument *a)
{
	memset(a, 0, sizeof(*a));
	r->fill(a);
}

/* The request ends with this errno, 0 for success. */
static void expect(const struct request *r, union argument *a, int err, const char *what)
{
	int got = ioctl(request_fd, r->command, a) == -1 ? errno : 0;

	if (got != err)
		km_fail(__FILE__, __LINE__, "%s %s: %s, not %s", r->name, what, strerror(got),
			strerror(err));
}

static void sizes(void)
{
	union argument a;

	requests_init();
	for (const struct request *r = requests; r->name; r++) {
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

	requests_init();
	for (const struct request *r = requests; r->name; r++) {
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

	requests_init();
	edge = km_pages(2 * page);
	KM_OK(munmap(edge + page, page));
	for (const struct request *r = requests; r->name; r++) {
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
	for (const struct request *r = requests; r->name; r++) {
		long long live = km_counter("live_regions");

		/* The others answer nothing. */
		if (r->size == 16)
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

	requests_init();
	memset(&a, 0, sizeof(a));
	for (int nr = 0; nr < 256; nr++) {
		if (memchr(known, nr, sizeof(known)))
			continue;
		a.size = 64;
		KM_ERR(ioctl(request_fd, _IO(ONECOPY_IOC_MAGIC, nr), &a), ENOTTY);
	}
	for (const struct request *r = requests; r->name; r++) {
		r->fill(&a);
		KM_ERR(ioctl(request_fd, r->command | _IOW(0, 0, uint32_t), &a), ENOTTY);
		KM_ERR(ioctl(request_fd, r->command ^ 0x100, &a), ENOTTY);
	}
}

static void modes(void)
{
	static const int wrong[] = {O_RDONLY, O_WRONLY};
	union argument a;

	requests_init();
	for (const struct request *r = requests; r->name; r++) {
		for (int i = 0; i < 2; i++) {
			int keep, other;

			r->fill(&a);
			keep = request_fd;
			other = request_fd = dv_open_as(wrong[i]);
			expect(r, &a, EBADF, "not for reading and writing");
			request_fd = keep;
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
