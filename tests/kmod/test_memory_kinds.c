// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy over every kind of memory a process can have. One body: where
 * the kind can be pinned, copies and mappings show what its owner sees, in both
 * directions, also what is written after the region was made; where not, the
 * errno is the one stated, and a region that may be written is refused apart.
 */
#include "dev.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define BYTES (40 * 4096)

struct memory {
	uint8_t *p;
	size_t bytes;
	bool read_only; /* the owner cannot write it */
	int no_read;	/* errno of regions to read; 0: there may be some */
	int no_write;	/* of those to write */
};

static uint8_t in_data[BYTES] = {1};
static uint8_t in_bss[BYTES];
static const uint8_t in_rodata[BYTES] = {2};

static struct memory mapped(int prot, int flags, int fd)
{
	void *p = mmap(NULL, BYTES, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		km_skip("no such memory here: %s", strerror(errno));
	return (struct memory){.p = p, .bytes = BYTES};
}

static int memory_file(unsigned int flags)
{
	int fd = memfd_create("kmod", flags);

	if (fd < 0)
		km_skip("no memfd here: %s", strerror(errno));
	KM_OK(ftruncate(fd, BYTES));
	return fd;
}

static int disk_file(const char *dir)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/kmod-XXXXXX", dir);
	fd = mkstemp(path);
	if (fd < 0)
		km_skip("no file in %s: %s", dir, strerror(errno));
	unlink(path);
	KM_OK(ftruncate(fd, BYTES));
	return fd;
}

/* What its owner sees in p[0, bytes), through regions. */
static void same_memory(int fd, uint64_t cookie, const struct memory *m, uint8_t *copy)
{
	uint8_t *map = dv_map(fd, cookie, 0, m->bytes, ONECOPY_MAP_READ);

	KM_TRUE(map != MAP_FAILED);
	KM_EQ(dv_read(fd, cookie, 0, copy, m->bytes), m->bytes);
	KM_TRUE(!memcmp(copy, m->p, m->bytes));
	KM_TRUE(!memcmp(map, m->p, m->bytes));
	KM_OK(munmap(map - (uintptr_t)map % km_page(), m->bytes));
}

static void check(struct memory m)
{
	const uint32_t ro = DV_RO | ONECOPY_REGION_WHOLE_PAGES;
	const uint32_t rw = DV_RW | ONECOPY_REGION_WHOLE_PAGES;
	struct onecopy_segment seg = dv_seg(m.p, m.bytes);
	uint8_t *copy = km_pages(m.bytes);
	uint64_t cookie;
	int fd = dv_open();

	if (m.no_read)
		KM_ERR(dv_create_try(fd, &seg, 1, ro, &cookie), m.no_read);
	if (m.no_write)
		KM_ERR(dv_create_try(fd, &seg, 1, rw, &cookie), m.no_write);
	if (m.no_read)
		return;
	/* Untouched so far: what is read, and what the owner writes later. */
	cookie = dv_create(fd, m.p, m.bytes, ro);
	same_memory(fd, cookie, &m, copy);
	if (!m.read_only) {
		km_fill(m.p, m.bytes, 1);
		same_memory(fd, cookie, &m, copy);
		KM_EQ(km_differ(copy, m.bytes, 1), m.bytes);
	}
	KM_OK(dv_destroy(fd, cookie));
	if (m.no_write)
		return;
	cookie = dv_create(fd, m.p, m.bytes, rw);
	km_fill(copy, m.bytes, 2);
	KM_EQ(dv_write(fd, cookie, 0, copy, m.bytes), m.bytes);
	KM_EQ(km_differ(m.p, m.bytes, 2), m.bytes);
	km_fill(m.p, m.bytes, 3);
	same_memory(fd, cookie, &m, copy);
}

/* Memory no region may be made of. */
static void refused(struct memory m)
{
	m.no_read = EFAULT;
	m.no_write = EFAULT;
	check(m);
}

static void anonymous(void)
{
	check(mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1));
}

static void anonymous_shared(void)
{
	check(mapped(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1));
}

static void anonymous_read_only(void)
{
	struct memory m = mapped(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	m.read_only = true;
	m.no_write = EFAULT;
	check(m);
}

/* One region of all of them: each shows what its owner sees, also what is written later. */
static void read_only_beside_writable(void)
{
	const size_t page = km_page();
	uint8_t *p = km_pages(4 * page), *copy = km_pages(4 * page);
	int fd = dv_open();
	uint64_t cookie;

	km_fill(p, page, 1);
	KM_OK(mprotect(p, page, PROT_READ));
	KM_EQ(km_touch(p + page, false), 0);
	cookie = dv_create(fd, p, 4 * page, DV_RO);
	km_fill(p + page, 3 * page, 2);
	KM_EQ(dv_read(fd, cookie, 0, copy, 4 * page), 4 * page);
	KM_TRUE(!memcmp(copy, p, 4 * page));
}

/* A program's own: stack, data, heap. */
static void program(void)
{
	uint8_t on_stack[BYTES];

	check((struct memory){.p = on_stack, .bytes = BYTES});
	check((struct memory){.p = in_data, .bytes = BYTES});
	check((struct memory){.p = in_bss, .bytes = BYTES});
	check((struct memory){.p = calloc(1, BYTES), .bytes = BYTES});
}

static void program_constants(void)
{
	check((struct memory){
		.p = (uint8_t *)in_rodata, .bytes = BYTES, .read_only = true, .no_write = EFAULT});
}

static void memfd_shared(void)
{
	check(mapped(PROT_READ | PROT_WRITE, MAP_SHARED, memory_file(0)));
}

static void memfd_private(void)
{
	check(mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE, memory_file(0)));
}

static void memfd_sealed(void)
{
	int fd = memory_file(MFD_ALLOW_SEALING);
	struct memory m;

	KM_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	m = mapped(PROT_READ, MAP_SHARED, fd);
	m.read_only = true;
	m.no_write = EFAULT;
	check(m);
}

/* Pages that no user space access can read may not be read by way of a region. */
static void memfd_secret_pages(void)
{
#ifdef SYS_memfd_secret
	int fd = syscall(SYS_memfd_secret, 0);
	struct memory m;

	if (fd < 0)
		km_skip("no secret memory here: %s", strerror(errno));
	KM_OK(ftruncate(fd, BYTES));
	m = mapped(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	refused(m);
#else
	km_skip("not known to this C library");
#endif
}

static void tmpfs_file(void)
{
	check(mapped(PROT_READ | PROT_WRITE, MAP_SHARED, disk_file("/dev/shm")));
}

static void file_private(void)
{
	check(mapped(PROT_READ | PROT_WRITE, MAP_PRIVATE, disk_file("/var/tmp")));
}

/* The program's own image: a file nobody may write. */
static void file_read_only(void)
{
	struct memory m = mapped(PROT_READ, MAP_SHARED, open("/proc/self/exe", O_RDONLY));

	m.bytes = 4096;
	m.read_only = true;
	m.no_write = EFAULT;
	check(m);
}

/* Beyond the end of the file there is no memory. */
static void file_past_end(void)
{
	int fd = memory_file(0);
	struct memory m = mapped(PROT_READ | PROT_WRITE, MAP_SHARED, fd);

	KM_OK(ftruncate(fd, BYTES / 2));
	refused(m);
}

static void hugetlb(void)
{
	const size_t bytes = 4 << 20;
	void *p;

	km_write_text("/proc/sys/vm/nr_hugepages", "4");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	if (p == MAP_FAILED)
		km_skip("no huge pages here: %s", strerror(errno));
	check((struct memory){.p = p, .bytes = bytes});
	check((struct memory){.p = (uint8_t *)p + 8192, .bytes = bytes - 12288});
}

/* Memory of devices is refused, however it is mapped. */
static void device_mapping(void)
{
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, km_pages(BYTES), BYTES, DV_RW);

	check((struct memory){
		.p = dv_map(fd, cookie, 0, BYTES, ONECOPY_MAP_READ | ONECOPY_MAP_WRITE),
		.bytes = BYTES,
		.no_read = EFAULT,
		.no_write = EFAULT});
}

/* The kernel's clock, of which the newest kernels make ordinary pages; nobody writes to it. */
static void vvar(void)
{
	struct onecopy_segment seg;
	uint64_t cookie;
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to = 0;
	int fd = dv_open();
	char line[512];

	KM_TRUE(maps != NULL);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[vvar]") && sscanf(line, "%lx-%lx", &from, &to) == 2)
			break;
	fclose(maps);
	if (!to)
		km_skip("no [vvar] here");
	seg = dv_seg((void *)from, to - from);
	if (dv_create_try(fd, &seg, 1, DV_RO | ONECOPY_REGION_WHOLE_PAGES, &cookie))
		KM_EQ(errno, EFAULT);
	KM_ERR(dv_create_try(fd, &seg, 1, DV_RW | ONECOPY_REGION_WHOLE_PAGES, &cookie), EFAULT);
}

static void physical_memory(void)
{
	int fd = open("/dev/mem", O_RDWR);
	struct memory m;

	if (fd < 0)
		km_skip("no /dev/mem here");
	m = mapped(PROT_READ, MAP_SHARED, fd);
	m.bytes = 4096;
	refused(m);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "anonymous", .run = anonymous},
		{.name = "anonymous_shared", .run = anonymous_shared},
		{.name = "anonymous_read_only", .run = anonymous_read_only},
		{.name = "read_only_beside_writable", .run = read_only_beside_writable},
		{.name = "program", .run = program},
		{.name = "program_constants", .run = program_constants},
		{.name = "memfd_shared", .run = memfd_shared},
		{.name = "memfd_private", .run = memfd_private},
		{.name = "memfd_sealed", .run = memfd_sealed},
		{.name = "memfd_secret", .run = memfd_secret_pages},
		{.name = "tmpfs_file", .run = tmpfs_file},
		{.name = "file_private", .run = file_private},
		{.name = "file_read_only", .run = file_read_only},
		{.name = "file_past_end", .run = file_past_end},
		{.name = "hugetlb", .run = hugetlb},
		{.name = "device_mapping", .run = device_mapping},
		{.name = "vvar", .run = vvar},
		{.name = "physical_memory", .run = physical_memory},
		{0},
	};

	return km_main(cases, argc, argv);
}
