/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_REGION_H
#define OC_REGION_H

/* The owner's side of regions: what region_ref.h lets peers look up. */

#include "segment/node.h"

/* This rank's table. Destroying waits as oc_region_destroy() does for all. */
int oc_region_table_create(struct oc_node *node);
void oc_region_table_destroy(struct oc_node *node);

#endif
