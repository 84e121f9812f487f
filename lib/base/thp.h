/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_THP_H
#define OC_THP_H

/*
 * What the system says of transparent huge pages of 2 MiB
 * (/sys/kernel/mm/transparent_hugepage). Any thread, does not allocate.
 */

#include <stdbool.h>

enum oc_thp {
	OC_THP_NEVER, /* or this process must not have any, or nobody knows of them */
	OC_THP_ADVISE,
	OC_THP_ALWAYS,
};

/* Private memory's: what the C library's blocks would have. */
enum oc_thp oc_thp_private(void);

enum oc_thp_shared {
	OC_THP_SHARED_DENIED, /* in every tmpfs, too */
	OC_THP_SHARED_NEVER,
	OC_THP_SHARED_ADVISE,
	OC_THP_SHARED_ALWAYS, /* asked for or not */
};

/* A memfd's. */
enum oc_thp_shared oc_thp_shared(void);

/* True in a virtual machine that reports free blocks to its host, by huge pages or
 * larger, and has to ask for the memory again at their first touch. */
bool oc_thp_reports_free_pages(void);

#endif
