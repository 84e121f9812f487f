// SPDX-License-Identifier: BSD-3-Clause
/*
 * PID 1 of a QEMU guest, alone in its initial file system: loads the modules
 * that reach the host's files, mounts these read-only and hands over to
 * $ONECOPY_INIT there. Linked statically, for nothing else is in here.
 *
 * The modules are /0.ko, /1.ko and so on, in an order in which each finds what
 * it needs.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void give_up(const char *what)
{
	fprintf(stderr, "stage1: %s: %s\n", what, strerror(errno));
	reboot(RB_POWER_OFF);
	_exit(1);
}

static void load_modules(void)
{
	char path[16];
	int i, fd;

	for (i = 0;; i++) {
		snprintf(path, sizeof(path), "/%d.ko", i);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return;
		if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
			give_up(path);
		close(fd);
	}
}

int main(void)
{
	const char *init = getenv("ONECOPY_INIT");

	if (!init) {
		errno = EINVAL;
		give_up("ONECOPY_INIT");
	}
	load_modules();
	mkdir("/root", 0755);
	/* Nobody else changes the host's files below us: cache what was read. */
	if (mount("root", "/root", "9p", MS_RDONLY,
		  "trans=virtio,version=9p2000.L,msize=512000,cache=loose"))
		give_up("the host's files");
	if (mount("devtmpfs", "/root/dev", "devtmpfs", 0, NULL))
		give_up("/dev");
	if (chdir("/root") || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		give_up("change of root");
	execl(init, init, (char *)NULL);
	give_up(init);
}
