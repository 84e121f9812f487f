// SPDX-License-Identifier: BSD-3-Clause
#include "base/address.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"

socklen_t oc_address_make(struct sockaddr_un *addr, const char *name)
{
	int len;

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	len = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "onecopy-%u-%s",
		       (unsigned int)geteuid(), name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

int oc_address_check_peer(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	if (cred.uid == geteuid())
		return 0;
	oc_note("bootstrap: the other end belongs to uid %u", (unsigned int)cred.uid);
	return -EPERM;
}
