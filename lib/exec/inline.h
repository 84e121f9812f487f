/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_EXEC_INLINE_H
#define OC_EXEC_INLINE_H

#include "exec/group.h"
#include "exec/op.h"
#include "plan/plan.h"

/*
 * Runs @plan in the calling thread, all of it, as the group's next operation.
 * On return the send buffer may be written and the receive buffer read, and after a
 * failure too no living member is at either of them. 0; -EPIPE a member died;
 * -ENOMEM; -EMSGSIZE the members bound different amounts; -EINVAL the plan is for another
 * place or other groups, or needs more than is bound; what another member gave up for.
 * After a failure the operation has failed on every member that needed this one,
 * perhaps on others, and the group is in step again.
 */
int oc_exec_inline(struct oc_group *group, const struct oc_plan *plan, const struct oc_bind *bind);

/* Takes the place of oc_exec_inline() for a member that cannot take part in the
 * group's next operation: those that need it fail for the reason @err, -errno, too. */
void oc_exec_decline(struct oc_group *group, int err);

#endif
