/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CPUS_H
#define OC_CPUS_H

#include <stdint.h>

#define OC_CPUS_WORDS 16 /* 1024 CPUs; machines with more are folded into these */

/* The CPUs this process may run on, as a bit mask. Never all zero. */
void oc_cpus_allowed(uint64_t mask[OC_CPUS_WORDS]);

/* CPUs' worth of time the cgroups (v2) of this process grant it, rounded up;
 * 0: no limit, or none that can be read. */
uint32_t oc_cpus_quota(void);

#endif
