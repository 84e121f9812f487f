/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_EXEC_INLINE_H
#define OC_EXEC_INLINE_H

#include <stdbool.h>

#include "exec/group.h"
#include "exec/op.h"
#include "plan/plan.h"

/*
 * Runs @plan in the calling thread, all of it, as the group's next operation.
 * On return the send buffer may be written and the receive buffer read, and after a
 * failure too no living member is at either of them. 0; -EPIPE a member died;
 * -ENOMEM; -EMSGSIZE the members bound different amounts; -EINVAL the plan is for another
 * place or other groups, or needs more than is bound; -EFAULT a buffer is at no address; what
 * another member gave up for.
 * After a failure the operation has failed on every member that needed this one,
 * perhaps on others, and the group is in step again.
 */
int oc_exec_inline(struct oc_group *group, const struct oc_plan *plan, const struct oc_bind *bind);

/*
 * The same in pieces: begins the group's next operation and returns. Any number may be under way
 * in a group, beside a call of oc_exec_inline() too, and end in any order. @op, @plan, @bind and
 * what these point to stay where and as they are until oc_exec_test() or oc_exec_wait() says that
 * the operation has ended; the buffers are the operation's. It goes on in these two and in
 * oc_exec_inline(), whatever operation of the group they are called for: somebody has to call one
 * of them again and again, or peers wait.
 */
void oc_exec_begin(struct oc_op *op, struct oc_group *group, const struct oc_plan *plan,
		   const struct oc_bind *bind);

/* Does not wait for peers, but for an answer of one that cannot be reached otherwise. True if the
 * operation has ended, with *@err as of oc_exec_inline(). */
bool oc_exec_test(struct oc_op *op, int *err);

/* Returns when it has ended, as oc_exec_inline(). */
int oc_exec_wait(struct oc_op *op);

/* Takes the place of oc_exec_inline() for a member that cannot take part in the
 * group's next operation: those that need it fail for the reason @err, -errno, too. */
void oc_exec_decline(struct oc_group *group, int err);

#endif
