// SPDX-License-Identifier: BSD-3-Clause
#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* Linux 6.3 */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#define MFD_EXEC	0x0010U
#endif

int oc_memfd_create(const char *name, uint64_t bytes)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	struct rlimit limit;
	int fd, err;

	/* Growing a file past the limit raises SIGXFSZ: ask first. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < bytes)
		return -EFBIG;
	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	fd = oc_file_above(fd);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* 0 or a failure: all of a file, into one that is empty. */
static int copy_all(int to, int from)
{
	struct stat stat;
	ssize_t done;

	if (fstat(from, &stat))
		return -errno;
	for (off_t left = stat.st_size; left; left -= done) {
		done = sendfile(to, from, NULL, (size_t)left);
		if (done <= 0)
			return done ? -errno : -EIO;
	}
	return 0;
}

int oc_memfd_copy(const char *name, const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), err, fd;

	if (from < 0)
		return -errno;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC);
	fd = oc_file_above(fd);
	err = fd < 0 ? -errno : copy_all(fd, from);
	close(from);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}
