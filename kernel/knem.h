/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_KNEM_H
#define OCK_KNEM_H

/* /dev/knem: KNEM's interface over the core. */
int ock_knem_init(void);
void ock_knem_exit(void);

#endif
