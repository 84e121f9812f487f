/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TMPFS_H
#define OC_TMPFS_H

#include <stdint.h>

/*
 * A file of @bytes zeros in a tmpfs of its own, mounted nowhere, whose pages are
 * huge as @huge says ("always", "advise": tmpfs(5)), without limit of size. Unlike
 * a memfd's they do not depend on what the system allows shared memory; unlike a
 * memfd the file can be cut short by who holds it. It has no name any more but is
 * shown as @name. The descriptor belongs to the caller and is closed by exec.
 *
 * Needs Linux 5.2 and the right to make a user namespace, else -errno: there is
 * nothing then that a memfd would not do. Any thread.
 */
int oc_tmpfs_file(const char *name, const char *huge, uint64_t bytes);

#endif
