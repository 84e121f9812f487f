// SPDX-License-Identifier: BSD-3-Clause
#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
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
