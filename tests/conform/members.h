/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_MEMBERS_H
#define OC_TEST_MEMBERS_H

#include "exec/group.h"
#include "job.h"

/* A group of all ranks of the job, in order. */
struct oc_group *members_join(struct job *job, oc_node *node);

#endif
