/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ADDRESS_H
#define OC_ADDRESS_H

/* Names by which processes of one user find each other: abstract AF_UNIX ones, which leave
 * nothing in any file system and which anybody could take. Any thread. */

#include <sys/socket.h>
#include <sys/un.h>

/* The user's own of that @name; returns its length. */
socklen_t oc_address_make(struct sockaddr_un *addr, const char *name);

/* Whether the other end of a connection belongs to this user: 0, -EPERM, -errno. Of a
 * socket pair the kernel knows the process that made it, of a connection the ones that
 * listened and connected. */
int oc_address_check_peer(int fd);

#endif
