/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_PAGES_H
#define OC_PAGES_H

/* Huge pages, and advice that the C library's headers may be too old for. */

#include <stddef.h>
#include <sys/mman.h>

/* What one entry of the page tables above the last covers. */
#define OC_HUGE_PAGE ((size_t)2 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18: of locked memory, too */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#endif
