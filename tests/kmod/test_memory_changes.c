// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy over memory that changes below a region: copy on write, huge
 * pages split and made, truncation, swap, memory cgroups. The owner and the
 * region see the same bytes as long as the owner did not replace its memory.
 */
#include "dev.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define BYTES (64 * 4096)
#define HUGE  (2 << 20)

/* The region shows what its owner sees, and the other way round. */
static void agree(int fd, uint64_t cookie, uint8_t *p, size_t bytes, uint64_t seed)
{
	uint8_t *copy = km_pages(bytes);

	km_fill(p, bytes, seed);
	KM_EQ(dv_read(fd, cookie, 0, copy, bytes), bytes);
	KM_EQ(km_differ(copy, bytes, seed), bytes);
	km_fill(copy, bytes, seed + 1);
	KM_EQ(dv_write(fd, cookie, 0, copy, bytes), bytes);
	KM_EQ(km_differ(p, bytes, seed + 1), bytes);
	KM_OK(munmap(copy, bytes));
}

/* A child that writes all of p when told, and sees only its own bytes. */
static pid_t writer(uint8_t *p, size_t bytes, const int go[2])
{
	pid_t pid = km_fork();
	char byte;

	if (pid)
		return pid;
	KM_EQ(km_differ(p, bytes, 1), bytes);
	km_fill(p, bytes, 7);
	KM_EQ(read(go[0], &byte, 1), 1);
	KM_EQ(km_differ(p, bytes, 7), bytes);
	_exit(0);
}

/* Regions made before and after a fork, whoever writes first. */
static void copy_on_write(void)
{
	uint8_t *p = km_pages(BYTES), *copy = km_pages(BYTES);
	int fd = dv_open(), go[2];

	KM_OK(pipe(go));
	for (int after = 0; after < 2; after++) {
		for (int kind = 0; kind < 2; kind++) {
			uint64_t cookie = 0;
			pid_t pid;

			km_fill(p, BYTES, 1);
			if (!after)
				cookie = dv_create(fd, p, BYTES, kind ? DV_RW : DV_RO);
			pid = writer(p, BYTES, go);
			if (after)
				cookie = dv_create(fd, p, BYTES, kind ? DV_RW : DV_RO);
			KM_EQ(dv_read(fd, cookie, 0, copy, BYTES), BYTES);
			KM_EQ(km_differ(copy, BYTES, 1), BYTES);
			km_fill(p, BYTES, 2);
			KM_EQ(dv_read(fd, cookie, 0, copy, BYTES), BYTES);
			KM_EQ(km_differ(copy, BYTES, 2), BYTES);
			if (kind)
				agree(fd, cookie, p, BYTES, 3);
			KM_EQ(write(go[1], "", 1), 1);
			km_join(pid);
			KM_OK(dv_destroy(fd, cookie));
		}
	}
}

/* The child owns a region of memory it shares with its parent by copy on write. */
static void copy_on_write_in_child(void)
{
	uint8_t *p = km_pages(BYTES);
	pid_t pid;

	km_fill(p, BYTES, 1);
	pid = km_fork();
	if (pid == 0) {
		int fd = dv_open();
		uint64_t cookie = dv_create(fd, p, BYTES, DV_RW);

		agree(fd, cookie, p, BYTES, 2);
		_exit(0);
	}
	km_join(pid);
	KM_EQ(km_differ(p, BYTES, 1), BYTES);
}

static uint8_t *huge_memory(void)
{
	uint8_t *p = km_pages(2 * HUGE);

	p += -(uintptr_t)p & (HUGE - 1);
	if (madvise(p, HUGE, MADV_HUGEPAGE))
		km_skip("no transparent huge pages here");
	return p;
}

/* The page table entry, then the folio, is split under the region. */
static void huge_split(void)
{
	uint8_t *p = huge_memory();
	int fd = dv_open();
	uint64_t cookie;

	memset(p, 1, HUGE);
	cookie = dv_create(fd, p, HUGE, DV_RW);
	agree(fd, cookie, p, HUGE, 1);
	KM_OK(mprotect(p + 8192, 4096, PROT_READ));
	KM_OK(mprotect(p + 8192, 4096, PROT_READ | PROT_WRITE));
	agree(fd, cookie, p, HUGE, 3);
	madvise(p + HUGE / 2, HUGE / 2, MADV_PAGEOUT);
	agree(fd, cookie, p, HUGE, 5);
	/* Half of it goes: the other half is still the same memory. */
	KM_OK(munmap(p + HUGE / 2, HUGE / 2));
	KM_OK(dv_destroy(fd, cookie));
	cookie = dv_create(fd, p, HUGE / 2, DV_RW);
	agree(fd, cookie, p, HUGE / 2, 7);
}

/* Small pages are asked to become a huge one while they are pinned and mapped. */
static void huge_collapse(void)
{
	uint8_t *p = km_pages(2 * HUGE), *map;
	int fd = dv_open();
	uint64_t cookie;

	p += -(uintptr_t)p & (HUGE - 1);
	madvise(p, HUGE, MADV_NOHUGEPAGE);
	memset(p, 1, HUGE);
	cookie = dv_create(fd, p, HUGE, DV_RW);
	map = dv_map(fd, cookie, 0, HUGE, ONECOPY_MAP_READ);
	KM_TRUE(map != MAP_FAILED);
	madvise(p, HUGE, MADV_HUGEPAGE);
	if (madvise(p, HUGE, MADV_COLLAPSE))
		km_note("collapse refused: %s", strerror(errno));
	agree(fd, cookie, p, HUGE, 1);
	KM_EQ(km_differ(map, HUGE, 2), HUGE);
}

/* The kernel would like to have pages elsewhere, or share them: not these. */
static void moved_about(void)
{
	int file = memfd_create("kmod", 0), fd = dv_open();
	uint8_t *p[2] = {km_pages(BYTES)};
	uint64_t cookie[2];

	KM_OK(file);
	KM_OK(ftruncate(file, BYTES));
	p[1] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	KM_TRUE(p[1] != MAP_FAILED);
	for (int i = 0; i < 2; i++) {
		memset(p[i], 3, BYTES);
		cookie[i] = dv_create(fd, p[i], BYTES, DV_RW);
		madvise(p[i], BYTES, MADV_MERGEABLE);
		madvise(p[i], 4 * km_page(), MADV_SOFT_OFFLINE);
	}
	km_write_text("/sys/kernel/mm/ksm/pages_to_scan", "10000");
	km_write_text("/sys/kernel/mm/ksm/run", "1");
	for (int round = 0; round < 5; round++) {
		km_write_text("/proc/sys/vm/compact_memory", "1");
		usleep(20000);
		for (int i = 0; i < 2; i++)
			agree(fd, cookie[i], p[i], BYTES, round);
	}
	km_write_text("/sys/kernel/mm/ksm/run", "2");
}

/* A file cut off below the region: old pages or none, but no trap, and the file is right. */
static void truncated(void)
{
	int file = memfd_create("kmod", 0), fd = dv_open();
	uint8_t *p, *copy = km_pages(BYTES), *map;
	uint64_t cookie;

	KM_OK(file);
	KM_OK(ftruncate(file, BYTES));
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	KM_TRUE(p != MAP_FAILED);
	km_fill(p, BYTES, 1);
	cookie = dv_create(fd, p, BYTES, DV_RW);
	map = dv_map(fd, cookie, 0, BYTES, ONECOPY_MAP_READ | ONECOPY_MAP_WRITE);
	KM_OK(ftruncate(file, 0));
	KM_EQ(km_touch(p, false), SIGBUS);
	KM_EQ(dv_read(fd, cookie, 0, copy, BYTES), BYTES);
	KM_OK(ftruncate(file, BYTES));
	memset(copy, 0xee, BYTES);
	KM_EQ(dv_write(fd, cookie, 0, copy, BYTES), BYTES);
	memset(map, 0xee, BYTES);
	/* New pages of the file: nothing of what was written to the old ones. */
	for (size_t i = 0; i < BYTES; i++)
		KM_EQ(p[i], 0);
}

/* Debian's kernels have much as modules; a guest may see them elsewhere than at their place. */
static void load(const char *module)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "modprobe %1$s 2>/dev/null || modprobe -d $(readlink -f /lib/modules/$(uname -r)/"
		 "modules.order | sed s,/lib/modules/.*,,) %1$s 2>/dev/null",
		 module);
	/* Built in, maybe. */
	if (system(command))
		km_note("no module %s", module);
}

/*
 * A file of a file system that wants to know who writes to its pages: newer kernels
 * pin none of them for writing, and say so.
 */
static void disk_file(void)
{
	char directory[] = "/dev/shm/kmod-ext4-XXXXXX", command[512], path[64];
	int fd = dv_open(), file;
	struct onecopy_segment seg;
	uint64_t cookie;
	uint8_t *p;

	KM_TRUE(mkdtemp(directory) != NULL);
	load("loop");
	load("ext4");
	snprintf(command, sizeof(command),
		 "truncate -s 32M %1$s.img && mkfs.ext4 -q %1$s.img && "
		 "mount -o loop %1$s.img %1$s 2>/dev/null",
		 directory);
	if (system(command))
		km_skip("no ext4 here");
	snprintf(path, sizeof(path), "%s/file", directory);
	file = open(path, O_RDWR | O_CREAT, 0600);
	KM_OK(file);
	KM_OK(ftruncate(file, BYTES));
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	KM_TRUE(p != MAP_FAILED);
	km_fill(p, BYTES, 1);
	seg = dv_seg(p, BYTES);
	if (dv_create_try(fd, &seg, 1, DV_RW, &cookie)) {
		KM_EQ(errno, EFAULT);
		km_note("not to be pinned for writing");
	} else {
		agree(fd, cookie, p, BYTES, 2);
		KM_OK(dv_destroy(fd, cookie));
		KM_OK(fsync(file));
		KM_EQ(km_differ(p, BYTES, 3), BYTES);
	}
	KM_OK(munmap(p, BYTES));
	close(file);
	KM_OK(umount(directory));
}

/* A swap device of our own, on a loop device; its name in @device. */
static bool swap_on(char *device, size_t size)
{
	FILE *f;
	bool on;

	load("loop");
	f = popen("f=/dev/shm/kmod-swap; dd if=/dev/zero of=$f bs=1M count=64 2>/dev/null && "
		  "d=$(losetup -f --show $f 2>/dev/null) && mkswap $d >/dev/null && "
		  "swapon $d && echo $d; rm -f $f",
		  "r");
	KM_TRUE(f != NULL);
	on = fgets(device, size, f) != NULL;
	pclose(f);
	device[strcspn(device, "\n")] = 0;
	return on;
}

static void out_and_in(void)
{
	uint8_t *p = km_pages(BYTES), *copy = km_pages(BYTES);
	char status[8192], *at;
	int fd = dv_open();
	uint64_t cookie;

	km_fill(p, BYTES, 1);
	KM_OK(madvise(p, BYTES, MADV_PAGEOUT));
	KM_TRUE(km_read_text("/proc/self/status", status, sizeof(status)));
	at = strstr(status, "VmSwap:");
	KM_TRUE(at && strtoul(at + 7, NULL, 10));
	cookie = dv_create(fd, p, BYTES, DV_RW);
	KM_EQ(dv_read(fd, cookie, 0, copy, BYTES), BYTES);
	KM_EQ(km_differ(copy, BYTES, 1), BYTES);
	/* Pinned now: it stays. */
	madvise(p, BYTES, MADV_PAGEOUT);
	agree(fd, cookie, p, BYTES, 2);
	/* The other side of a copy, out. */
	km_fill(copy, BYTES, 5);
	KM_OK(madvise(copy, BYTES, MADV_PAGEOUT));
	KM_EQ(dv_write(fd, cookie, 0, copy, BYTES), BYTES);
	KM_EQ(km_differ(p, BYTES, 5), BYTES);
}

static void swapped_out(void)
{
	char device[64] = "", off[160];
	int status;
	pid_t pid;

	if (!swap_on(device, sizeof(device)))
		km_skip("no swap to be had here");
	pid = km_fork();
	if (pid == 0) {
		out_and_in();
		_exit(0);
	}
	KM_EQ(waitpid(pid, &status, 0), pid);
	snprintf(off, sizeof(off), "swapoff %s && losetup -d %s", device, device);
	KM_EQ(system(off), 0);
	KM_EQ(status, 0);
}

/* Beyond the limit of its memory cgroup: an errno or the cgroup's killer; nothing stays pinned. */
static void memory_cgroup(void)
{
	const size_t bytes = 64 << 20;
	char root[] = "/tmp/kmod-cgroup-XXXXXX", path[128], text[32];
	int fd = dv_open(), status;
	pid_t pid;

	if (!mkdtemp(root) || mount("none", root, "cgroup2", 0, NULL))
		km_skip("no cgroups here: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", root);
	km_write_text(path, "+memory");
	snprintf(path, sizeof(path), "%s/kmod-%d", root, getpid());
	KM_OK(mkdir(path, 0755));
	snprintf(path, sizeof(path), "%s/kmod-%d/memory.max", root, getpid());
	if (!km_write_text(path, "16777216"))
		km_skip("no memory controller here");
	pid = km_fork();
	if (pid == 0) {
		struct onecopy_segment seg = dv_seg(km_pages(bytes), bytes);
		uint64_t cookie;

		snprintf(path, sizeof(path), "%s/kmod-%d/cgroup.procs", root, getppid());
		snprintf(text, sizeof(text), "%d", getpid());
		KM_TRUE(km_write_text(path, text));
		for (int i = 0; i < 3; i++) {
			KM_TRUE(dv_create_try(fd, &seg, 1, DV_RW, &cookie) == -1);
			KM_TRUE(errno == ENOMEM || errno == EFAULT || errno == EINTR);
		}
		/* Less is fine. */
		seg.length = 4 << 20;
		KM_OK(dv_create_try(fd, &seg, 1, DV_RW, &cookie));
		_exit(0);
	}
	KM_EQ(waitpid(pid, &status, 0), pid);
	KM_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	km_note("the child %s", WIFSIGNALED(status) ? "was killed by its cgroup" : "saw the errno");
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "copy_on_write", .run = copy_on_write},
		{.name = "copy_on_write_in_child", .run = copy_on_write_in_child},
		{.name = "huge_split", .run = huge_split},
		{.name = "huge_collapse", .run = huge_collapse},
		{.name = "moved_about", .run = moved_about},
		{.name = "truncated", .run = truncated},
		{.name = "disk_file", .run = disk_file},
		{.name = "swapped_out", .run = swapped_out},
		{.name = "memory_cgroup", .run = memory_cgroup},
		{0},
	};

	return km_main(cases, argc, argv);
}
