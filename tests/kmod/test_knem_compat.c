// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/knem for 32-bit callers: the ioctl enters through the kernel's 32-bit
 * system call table (int 0x80), with every address below 4 GiB.
 */
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

static void calls(void)
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

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "calls", .run = calls},
		{0},
	};

	return km_main(cases, argc, argv);
}
