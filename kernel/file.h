/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_FILE_H
#define OCK_FILE_H

/* /dev/onecopy: include/uapi/onecopy.h over the core. */
int ock_file_init(void);
void ock_file_exit(void);

#endif
