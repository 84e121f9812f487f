// SPDX-License-Identifier: BSD-3-Clause
/*
 * A userfaultfd, by which libfabric hears of memory that goes away where the system lets it have
 * one. The kernel tells it of registered pages, whoever asks for them to be taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "hooks.h"

#define PAGE ((size_t)4096)

static int fd;
static char *bell; /* a page of which the thread hears last */

static void set_registered(char *p, size_t bytes)
{
	char *from = (char *)(((uintptr_t)p + PAGE - 1) & ~(PAGE - 1));
	struct uffdio_register range = {
		.range = {(uintptr_t)from, (size_t)(p + bytes - from) & ~(PAGE - 1)},
		.mode = UFFDIO_REGISTER_MODE_MISSING};

	CHECK(!ioctl(fd, UFFDIO_REGISTER, &range));
}

static void *hear(void *unused)
{
	struct uffd_msg msg;

	while (read(fd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_zeropage zero = {
			.range = {msg.arg.pagefault.address & ~(PAGE - 1), PAGE}};

		if (msg.event == UFFD_EVENT_PAGEFAULT)
			CHECK(!ioctl(fd, UFFDIO_ZEROPAGE, &zero) || errno == EEXIST);
		else if (msg.event == UFFD_EVENT_REMAP)
			hooks_hear((char *)(uintptr_t)msg.arg.remap.from, msg.arg.remap.len);
		else
			hooks_hear((char *)(uintptr_t)msg.arg.remove.start,
				   msg.arg.remove.end - msg.arg.remove.start);
	}
	return unused;
}

/* The call ends when the event is read, and the next is read when this one has been dealt with:
 * whoever returns from two has been heard. The heap keeps blocks for reuse as they are. */
static size_t settle(char *p, size_t bytes)
{
	static unsigned char there[(256 * MIB) / PAGE];
	uintptr_t from = ((uintptr_t)p + PAGE - 1) & ~(PAGE - 1);
	size_t left = 0;

	for (int i = 0; i < 2; i++)
		CHECK(!madvise(bell, PAGE, MADV_DONTNEED));
	if (mincore((void *)from, bytes - PAGE, there))
		return 0;
	for (size_t i = 0; i < bytes / PAGE - 1; i++)
		left += there[i] & 1 ? PAGE : 0;
	return left;
}

int main(int argc, char **argv)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP |
					     UFFD_FEATURE_EVENT_REMAP};
	pthread_t thread;

	CHECK(argc == 2);
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) {
		puts("none");
		return 0;
	}
	bell = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bell != MAP_FAILED);
	set_registered(bell, PAGE);
	CHECK(!pthread_create(&thread, NULL, hear, NULL));
	hooks_begin = set_registered;
	hooks_settle = settle;
	hooks_check(argv[1]);
	return 0;
}
