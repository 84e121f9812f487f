// SPDX-License-Identifier: BSD-3-Clause
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int oc_file_above(int fd)
{
	int above, err;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	err = errno;
	close(fd);
	errno = err;
	return above;
}

int oc_file_identify(struct oc_file *file, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*file = (struct oc_file){.dev = st.st_dev, .ino = st.st_ino};
	return 0;
}

bool oc_file_is(const struct oc_file *file, int fd)
{
	struct oc_file now;
	int saved = errno;
	bool same = fd >= 0 && !oc_file_identify(&now, fd) && now.dev == file->dev &&
		    now.ino == file->ino;

	errno = saved;
	return same;
}

void oc_file_close(const struct oc_file *file, int fd)
{
	if (oc_file_is(file, fd))
		close(fd);
}

long oc_file_read_text(const char *path, char *text, size_t size)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), n = -errno;

	if (fd >= 0) {
		n = syscall(SYS_read, fd, text, size - 1);
		if (n < 0)
			n = -errno;
		syscall(SYS_close, fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n;
}
