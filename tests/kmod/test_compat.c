// SPDX-License-Identifier: BSD-3-Clause
/*
 * Both devices for 32-bit callers: the ioctl enters through the kernel's 32-bit
 * system call table (int 0x80), with every address below 4 GiB.
 */
#include "dev.h"
#include "knem.h"

#include <sys/wait.h>

#if defined(__x86_64__)
enum { NR32_IOCTL = 54, NR32_GETPID = 20 };

static long call32(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static int ioctl32(int fd, unsigned long cmd, void *arg)
{
	long ret = call32(NR32_IOCTL, fd, (uint32_t)cmd, (long)arg);

	if (ret < 0 && ret > -4096) {
		errno = -ret;
		return -1;
	}
	return ret;
}
#else
static int ioctl32(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg);
}
#endif

/* A kernel without the 32-bit table answers something else, or a signal. */
static void require32(void)
{
#if defined(__x86_64__)
	pid_t pid;
	int status;

	/* There int 0x80 reaches the host, which does not know what it means. */
	if (km_uml())
		km_skip("User-Mode Linux has no 32-bit system calls");
	pid = fork();
	KM_TRUE(pid >= 0);
	if (pid == 0)
		_exit(call32(NR32_GETPID, 0, 0, 0) == getpid() ? 0 : 1);
	KM_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		km_skip("this kernel has no 32-bit system calls");
#else
	km_skip("no 32-bit system calls on this machine");
#endif
}

struct shared {
	struct knem_cmd_info info;
	struct knem_cmd_create_region create;
	struct knem_cmd_inline_copy copy;
	struct knem_cmd_param_iovec iov, local;
	struct onecopy_info about;
	struct onecopy_segment seg, to_seg;
	struct onecopy_region_create region;
	struct onecopy_region_destroy destroy;
	struct onecopy_copy move;
	struct onecopy_map map;
	knem_cookie_t cookie;
	uint8_t from[5000], to[5000];
};

static struct shared *low(void)
{
	void *p = MAP_FAILED;
#ifdef MAP_32BIT
	p = mmap(NULL, sizeof(struct shared), KN_RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
		 0);
#endif
	KM_TRUE(p != MAP_FAILED);
	return p;
}

static void knem(void)
{
	struct shared *s;
	int fd;

	require32();
	fd = kn_open();
	s = low();
	KM_OK(ioctl32(fd, KNEM_CMD_GET_INFO, &s->info));
	KM_EQ(s->info.abi, KNEM_ABI_VERSION);
	km_fill(s->from, sizeof(s->from), 1);
	s->iov = kn_iov(s->from, sizeof(s->from));
	s->local = kn_iov(s->to, sizeof(s->to));
	s->create.iovec_array = (uintptr_t)&s->iov;
	s->create.iovec_nr = 1;
	s->create.protection = PROT_READ;
	KM_OK(ioctl32(fd, KNEM_CMD_CREATE_REGION, &s->create));
	s->copy.local_iovec_array = (uintptr_t)&s->local;
	s->copy.local_iovec_nr = 1;
	s->copy.remote_cookie = s->create.cookie;
	KM_OK(ioctl32(fd, KNEM_CMD_INLINE_COPY, &s->copy));
	KM_EQ(s->copy.current_status, KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(s->to, sizeof(s->to), 1), sizeof(s->to));
	s->copy.write = 1;
	KM_ERR(ioctl32(fd, KNEM_CMD_INLINE_COPY, &s->copy), EACCES);
	s->cookie = s->create.cookie;
	KM_OK(ioctl32(fd, KNEM_CMD_DESTROY_REGION, &s->cookie));
	KM_ERR(ioctl32(fd, KNEM_CMD_DESTROY_REGION, &s->cookie), EINVAL);
	KM_ERR(ioctl32(fd, _IO(KNEM_CMD_MAGIC, 0x77), s), ENOSYS);
}

static void onecopy(void)
{
	struct shared *s;
	uint8_t *m;
	int fd;

	require32();
	fd = dv_open();
	s = low();
	s->about.size = sizeof(s->about);
	KM_OK(ioctl32(fd, ONECOPY_IOC_INFO, &s->about));
	KM_EQ(s->about.abi, ONECOPY_ABI);
	km_fill(s->from, sizeof(s->from), 1);
	s->seg = dv_seg(s->from, sizeof(s->from));
	s->region = (struct onecopy_region_create){
		.size = sizeof(s->region),
		.flags = DV_RO | ONECOPY_REGION_WHOLE_PAGES,
		.segments = (uintptr_t)&s->seg,
		.nr_segments = 1,
	};
	KM_OK(ioctl32(fd, ONECOPY_IOC_REGION_CREATE, &s->region));
	s->to_seg = dv_seg(s->to, sizeof(s->to));
	s->move = (struct onecopy_copy){
		.size = sizeof(s->move),
		.source = s->region.cookie,
		.local = (uintptr_t)&s->to_seg,
		.nr_local = 1,
		.length = UINT64_MAX,
	};
	KM_OK(ioctl32(fd, ONECOPY_IOC_COPY, &s->move));
	KM_EQ(s->move.copied, sizeof(s->to));
	KM_EQ(km_differ(s->to, sizeof(s->to), 1), sizeof(s->to));
	s->map = (struct onecopy_map){
		.size = sizeof(s->map),
		.flags = ONECOPY_MAP_READ,
		.cookie = s->region.cookie,
		.length = sizeof(s->from),
	};
	KM_OK(ioctl32(fd, ONECOPY_IOC_MAP, &s->map));
	/* mmap2() counts pages: all of the offset must fit. */
	KM_TRUE(s->map.map_offset / 4096 <= UINT32_MAX);
	m = mmap(NULL, s->map.map_length, PROT_READ, MAP_SHARED, fd, s->map.map_offset);
	KM_TRUE(m != MAP_FAILED);
	KM_EQ(km_differ(m + s->map.skip, sizeof(s->from), 1), sizeof(s->from));
	s->destroy = (struct onecopy_region_destroy){sizeof(s->destroy), 0, s->region.cookie};
	KM_OK(ioctl32(fd, ONECOPY_IOC_REGION_DESTROY, &s->destroy));
	KM_ERR(ioctl32(fd, ONECOPY_IOC_COPY, &s->move), ENOENT);
	KM_ERR(ioctl32(fd, _IO(ONECOPY_IOC_MAGIC, 0x77), s), ENOTTY);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "knem", .run = knem},
		{.name = "onecopy", .run = onecopy},
		{0},
	};

	return km_main(cases, argc, argv);
}
