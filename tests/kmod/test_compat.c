// SPDX-License-Identifier: BSD-3-Clause
/*
 * Both devices for 32-bit callers: requests enter through the kernel's 32-bit
 * system call table (int 0x80), with every address below 4 GiB.
 */
#include "dev.h"
#include "knem.h"

#include <poll.h>
#include <sys/wait.h>

#if defined(__x86_64__)
enum { NR32_READ = 3, NR32_GETPID = 20, NR32_IOCTL = 54, NR32_POLL = 168, NR32_MMAP2 = 192 };

/* The sixth argument of mmap2() is always 0 here, and in a register that C keeps. */
static long call32(long nr, long a, long b, long c, long d, long e)
{
	long ret;

	__asm__ volatile("mov %%rbp, %%r12; xor %%ebp, %%ebp; int $0x80; mov %%r12, %%rbp"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory", "r8", "r9", "r10", "r11", "r12");
	if (ret < 0 && ret > -4096) {
		errno = -ret;
		return -1;
	}
	return ret;
}

static int ioctl32(int fd, unsigned long cmd, void *arg)
{
	return call32(NR32_IOCTL, fd, (uint32_t)cmd, (long)arg, 0, 0);
}

static void *mmap32(int fd, size_t bytes)
{
	long ret = call32(NR32_MMAP2, 0, bytes, KN_RW, MAP_SHARED, fd);

	return ret == -1 ? MAP_FAILED : (void *)(uintptr_t)(uint32_t)ret;
}

static ssize_t read32(int fd, void *to, size_t bytes)
{
	return call32(NR32_READ, fd, (long)to, bytes, 0, 0);
}

static int poll32(struct pollfd *p)
{
	return call32(NR32_POLL, (long)p, 1, 10000, 0, 0);
}
#else
static int ioctl32(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg);
}

static void *mmap32(int fd, size_t bytes)
{
	return mmap(NULL, bytes, KN_RW, MAP_SHARED, fd, 0);
}

static ssize_t read32(int fd, void *to, size_t bytes)
{
	return read(fd, to, bytes);
}

static int poll32(struct pollfd *p)
{
	return poll(p, 1, 10000);
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
		_exit(call32(NR32_GETPID, 0, 0, 0, 0, 0) == getpid() ? 0 : 1);
	KM_EQ(waitpid(pid, &status, 0), pid);
	if (status)
		km_skip("this kernel has no 32-bit system calls");
#else
	km_skip("no 32-bit system calls on this machine");
#endif
}

struct shared {
	struct knem_cmd_info info;
	struct knem_cmd_bind_offload bind;
	struct knem_cmd_create_region create;
	struct knem_cmd_inline_copy copy;
	struct knem_cmd_inline_copy_bounded inline_bounded;
	struct knem_cmd_copy whole;
	struct knem_cmd_copy_bounded bounded;
	struct knem_cmd_init_send_param send;
	struct knem_cmd_init_async_recv_param async_recv;
	struct knem_cmd_sync_recv_param sync_recv;
	struct knem_cmd_param_iovec iov, local;
	struct pollfd poll;
	uint32_t index[2];
	uint8_t cpu;
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

/* Fresh bytes in @from, none in @to. */
static void refill(struct shared *s, uint64_t seed)
{
	km_fill(s->from, sizeof(s->from), seed);
	memset(s->to, 0, sizeof(s->to));
}

static void knem_regions(void)
{
	struct shared *s;
	int fd;

	require32();
	fd = kn_open();
	s = low();
	s->iov = kn_iov(s->from, sizeof(s->from));
	s->local = kn_iov(s->to, sizeof(s->to));
	s->create.iovec_array = (uintptr_t)&s->iov;
	s->create.iovec_nr = 1;
	s->create.protection = KN_RW;
	KM_OK(ioctl32(fd, KNEM_CMD_CREATE_REGION, &s->create));
	s->whole.src_cookie = s->bounded.src_cookie = s->inline_bounded.remote_cookie =
		s->create.cookie;
	s->create.iovec_array = (uintptr_t)&s->local;
	KM_OK(ioctl32(fd, KNEM_CMD_CREATE_REGION, &s->create));
	s->whole.dst_cookie = s->bounded.dst_cookie = s->create.cookie;

	refill(s, 1);
	KM_OK(ioctl32(fd, KNEM_CMD_COPY, &s->whole));
	KM_EQ(s->whole.current_status, KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(s->to, sizeof(s->to), 1), sizeof(s->to));
	refill(s, 2);
	s->bounded.length = 4099;
	KM_OK(ioctl32(fd, KNEM_CMD_COPY_BOUNDED, &s->bounded));
	KM_EQ(s->bounded.current_status, KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(s->to, 4099, 2), 4099);
	KM_EQ(s->to[4099], 0);
	refill(s, 3);
	s->inline_bounded.local_iovec_array = (uintptr_t)&s->local;
	s->inline_bounded.local_iovec_nr = 1;
	s->inline_bounded.length = 7;
	KM_OK(ioctl32(fd, KNEM_CMD_INLINE_COPY_BOUNDED, &s->inline_bounded));
	KM_EQ(s->inline_bounded.current_status, KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(s->to, 7, 3), 7);
	KM_EQ(s->to[7], 0);
	/* Lengths and offsets are of 64 bits all the same. */
	s->inline_bounded.remote_offset = 1ull << 40;
	s->inline_bounded.length = UINT64_MAX;
	KM_OK(ioctl32(fd, KNEM_CMD_INLINE_COPY_BOUNDED, &s->inline_bounded));
	KM_EQ(s->to[7], 0);
}

static void knem_old(void)
{
	volatile knem_status_t *slot;
	struct shared *s;
	int fd;

	require32();
	fd = kn_open();
	s = low();
	s->iov = kn_iov(s->from, sizeof(s->from));
	s->local = kn_iov(s->to, sizeof(s->to));
	s->send.send_iovec_array = (uintptr_t)&s->iov;
	s->send.send_iovec_nr = 1;
	KM_OK(ioctl32(fd, KNEM_CMD_INIT_SEND, &s->send));
	s->sync_recv.recv_iovec_array = (uintptr_t)&s->local;
	s->sync_recv.recv_iovec_nr = 1;
	s->sync_recv.send_cookie = s->send.send_cookie;
	refill(s, 1);
	KM_OK(ioctl32(fd, KNEM_CMD_SYNC_RECV, &s->sync_recv));
	KM_EQ(s->sync_recv.status, KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(s->to, sizeof(s->to), 1), sizeof(s->to));

	slot = mmap32(fd, 45);
	KM_TRUE(slot != MAP_FAILED);
	KM_OK(ioctl32(fd, KNEM_CMD_INIT_SEND, &s->send));
	s->async_recv.recv_iovec_array = (uintptr_t)&s->local;
	s->async_recv.recv_iovec_nr = 1;
	s->async_recv.status_index = 44;
	s->async_recv.send_cookie = s->send.send_cookie;
	s->async_recv.flags = KNEM_FLAG_MEMCPYTHREAD;
	refill(s, 2);
	KM_OK(ioctl32(fd, KNEM_CMD_INIT_ASYNC_RECV, &s->async_recv));
	KM_EQ(kn_wait(slot + 44), KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(s->to, sizeof(s->to), 2), sizeof(s->to));
}

static void knem_events(void)
{
	volatile knem_status_t *slot;
	struct shared *s;
	int fd;

	require32();
	fd = kn_open();
	s = low();
	s->cpu = 1;
	s->bind = (struct knem_cmd_bind_offload){KNEM_BIND_FLAG_CUSTOM, 1, (uintptr_t)&s->cpu};
	KM_OK(ioctl32(fd, KNEM_CMD_BIND_OFFLOAD, &s->bind));
	slot = mmap32(fd, 4096);
	KM_TRUE(slot != MAP_FAILED);
	KM_ERR((intptr_t)mmap32(fd, 4096), EBUSY);
	KM_ERR(ioctl32(fd, KNEM_CMD_BIND_OFFLOAD, &s->bind), EBUSY);
	s->iov = kn_iov(s->from, sizeof(s->from));
	s->local = kn_iov(s->to, sizeof(s->to));
	s->create.iovec_array = (uintptr_t)&s->iov;
	s->create.iovec_nr = 1;
	s->create.protection = PROT_READ;
	KM_OK(ioctl32(fd, KNEM_CMD_CREATE_REGION, &s->create));
	s->copy.local_iovec_array = (uintptr_t)&s->local;
	s->copy.local_iovec_nr = 1;
	s->copy.remote_cookie = s->create.cookie;
	s->copy.flags = KNEM_FLAG_MEMCPYTHREAD | KNEM_FLAG_NOTIFY_FD;
	refill(s, 1);
	for (int i = 0; i < 2; i++) {
		s->copy.async_status_index = 10 + i;
		KM_OK(ioctl32(fd, KNEM_CMD_INLINE_COPY, &s->copy));
	}
	s->poll = (struct pollfd){.fd = fd, .events = POLLIN};
	KM_EQ(poll32(&s->poll), 1);
	KM_EQ(s->poll.revents, POLLIN);
	KM_EQ(read32(fd, s->index, sizeof(s->index)), sizeof(s->index));
	KM_EQ(s->index[0], 10);
	KM_EQ(s->index[1], 11);
	KM_EQ(slot[11], KNEM_STATUS_SUCCESS);
	KM_EQ(km_differ(s->to, sizeof(s->to), 1), sizeof(s->to));
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
		{.name = "knem_regions", .run = knem_regions},
		{.name = "knem_old", .run = knem_old},
		{.name = "knem_events", .run = knem_events},
		{.name = "onecopy", .run = onecopy},
		{0},
	};

	return km_main(cases, argc, argv);
}
