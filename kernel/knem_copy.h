/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_KNEM_COPY_H
#define OCK_KNEM_COPY_H

/* Requests of /dev/knem that copy. */

#include "knem_request.h"

/*
 * Handlers: 0 accepted, the argument's out members are valid; else an errno of
 * the core's, which knem.c translates.
 */
typedef int (*ock_knem_handler)(struct ock_knem *knem, union ock_knem_argument *argument);

int ock_knem_copy_whole(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_copy_bounded(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_inline_whole(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_inline_bounded(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_async_recv(struct ock_knem *knem, union ock_knem_argument *argument);
int ock_knem_sync_recv(struct ock_knem *knem, union ock_knem_argument *argument);

#endif
