// SPDX-License-Identifier: BSD-3-Clause
/* /dev/onecopy: synchronous copies: large ones, protection, every error of COPY. */
#include "dev.h"

/* Larger than any piece the kernel may cut copies into. */
static void large(void)
{
	const size_t bytes = 96 << 20;
	uint8_t *p = km_pages(bytes), *q = km_pages(bytes);
	int fd = km_open_unlimited(dv_open);
	uint64_t src = dv_create(fd, p, bytes, DV_RW), dst = dv_create(fd, q, bytes, DV_RW);

	km_fill(p, bytes, 1);
	KM_EQ(dv_copy(fd, src, 1, dst, 2, UINT64_MAX), bytes - 2);
	KM_TRUE(!memcmp(q + 2, p + 1, bytes - 2));
	KM_TRUE(q[0] == 0 && q[1] == 0);
	memset(p, 0, bytes);
	KM_EQ(dv_read(fd, dst, 2, p + 1, bytes - 1), bytes - 2);
	KM_TRUE(!memcmp(q + 2, p + 1, bytes - 2));
}

static void protection(void)
{
	uint8_t *p = km_pages(4096), local[16] = {5};
	int fd = dv_open();
	uint64_t none = dv_create(fd, p, 4096, 0), ro = dv_create(fd, p, 4096, DV_RO);
	uint64_t wo = dv_create(fd, p, 4096, ONECOPY_REGION_WRITE);

	KM_ERR(dv_read(fd, none, 0, local, 16), EACCES);
	KM_ERR(dv_write(fd, none, 0, local, 16), EACCES);
	KM_ERR(dv_write(fd, ro, 0, local, 16), EACCES);
	KM_ERR(dv_read(fd, wo, 0, local, 16), EACCES);
	KM_ERR(dv_copy(fd, wo, 0, wo, 0, 8), EACCES);
	KM_ERR(dv_copy(fd, ro, 0, ro, 0, 8), EACCES);
	/* Also where nothing would move. */
	KM_ERR(dv_write(fd, ro, 9999, local, 16), EACCES);
	KM_ERR(dv_write(fd, ro, 0, local, 0), EACCES);
	KM_EQ(p[0], 0);
	KM_EQ(dv_write(fd, wo, 4, local, 16), 16);
	KM_EQ(p[4], 5);
	KM_EQ(dv_copy(fd, ro, 4, wo, 2000, 1), 1);
	KM_EQ(p[2000], 5);
}

static int raw(int fd, struct onecopy_copy c)
{
	c.size = sizeof(c);
	return ioctl(fd, ONECOPY_IOC_COPY, &c);
}

static void combinations(void)
{
	uint8_t *p = km_pages(4096);
	struct onecopy_segment seg = dv_seg(p, 64), wrap[] = {{UINT64_MAX - 4, 64}, dv_seg(p, 1)};
	struct onecopy_segment sum[] = {
		{(uintptr_t)p, 1ull << 62}, {0, 1ull << 62}, {0, 1ull << 62}};
	const uint64_t local = (uintptr_t)&seg;
	int fd = dv_open();
	uint32_t max = dv_info(fd).max_segments;
	uint64_t c = dv_create(fd, km_pages(4096), 4096, DV_RW);

	KM_ERR(raw(fd, (struct onecopy_copy){.local = local, .nr_local = 1}), EINVAL);
	KM_ERR(raw(fd, (struct onecopy_copy){0}), EINVAL);
	KM_ERR(raw(fd,
		   (struct onecopy_copy){
			   .source = c, .destination_offset = 1, .local = local, .nr_local = 1}),
	       EINVAL);
	KM_ERR(raw(fd,
		   (struct onecopy_copy){
			   .destination = c, .source_offset = 1, .local = local, .nr_local = 1}),
	       EINVAL);
	KM_ERR(raw(fd, (struct onecopy_copy){.source = c, .destination = c, .nr_local = 1}),
	       EINVAL);
	KM_ERR(raw(fd, (struct onecopy_copy){.source = c, .destination = c, .local = 8}), EINVAL);
	for (uint32_t flags = 2; flags < 8; flags += 2)
		KM_ERR(raw(fd,
			   (struct onecopy_copy){
				   .source = c, .flags = flags & 6, .local = local, .nr_local = 1}),
		       EINVAL);
	KM_ERR(raw(fd, (struct onecopy_copy){.source = c, .local = 8, .nr_local = 1}), EFAULT);
	KM_ERR(raw(fd, (struct onecopy_copy){.source = c, .local = local, .nr_local = max + 1}),
	       E2BIG);
	KM_ERR(raw(fd,
		   (struct onecopy_copy){
			   .source = c, .local = (uintptr_t)wrap, .nr_local = 2, .length = 8}),
	       EOVERFLOW);
	KM_ERR(raw(fd,
		   (struct onecopy_copy){
			   .source = c, .local = (uintptr_t)sum, .nr_local = 3, .length = 8}),
	       EOVERFLOW);
	/* No local segment is no local byte. */
	KM_OK(raw(fd, (struct onecopy_copy){.source = c, .length = 8}));
	KM_ERR(raw(fd,
		   (struct onecopy_copy){.source = c, .local = local, .nr_local = 1, .slot = 3}),
	       EINVAL);
}

/* A fault tells how far it got at least, and nothing behind the hole is written. */
static void faults(void)
{
	const size_t page = km_page();
	uint8_t *p = km_pages(8 * page), *hole = km_pages(8 * page);
	struct onecopy_segment seg = dv_seg(hole + 100, 7 * page);
	struct onecopy_copy c = {.local = (uintptr_t)&seg, .nr_local = 1, .length = UINT64_MAX};
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p, 8 * page, DV_RW);

	km_fill(p, 8 * page, 1);
	memset(hole, 0xaa, 8 * page);
	KM_OK(munmap(hole + 4 * page, page));
	for (int write = 0; write < 2; write++) {
		c.size = sizeof(c);
		c.copied = UINT64_MAX;
		c.source = write ? 0 : cookie;
		c.destination = write ? cookie : 0;
		KM_ERR(ioctl(fd, ONECOPY_IOC_COPY, &c), EFAULT);
		KM_TRUE(c.copied <= 4 * page - 100);
		if (write)
			KM_TRUE(!memcmp(p, hole + 100, c.copied));
		else
			KM_EQ(km_differ(hole + 100, c.copied, 1), c.copied);
		KM_EQ(hole[5 * page], 0xaa);
	}
	/* Writing to what is read-only. */
	KM_OK(mprotect(hole, page, PROT_READ));
	KM_ERR(dv_read(fd, cookie, 0, hole, 64), EFAULT);
	KM_EQ(dv_write(fd, cookie, 0, hole, 64), 64);
	KM_ERR(dv_read(fd, cookie, 0, km_kernel_address(), 64), EFAULT);
	KM_ERR(dv_write(fd, cookie, 0, km_kernel_address(), 64), EFAULT);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "large", .run = large},
		{.name = "protection", .run = protection},
		{.name = "combinations", .run = combinations},
		{.name = "faults", .run = faults},
		{0},
	};

	return km_main(cases, argc, argv);
}
