/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_USER_MEMORY_H
#define OCK_USER_MEMORY_H

/* Memory of the process that calls, at its addresses, as a provider of pages. */

#include "pages.h"

extern const struct ock_provider ock_user_memory;

#endif
