/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef OCK_FOLIO_H
#define OCK_FOLIO_H

/*
 * Large folios: a page of one that is pinned keeps all of it. So a user is charged the
 * whole, once, however many pins of the user's are in it.
 */

#include "limit.h"
#include "pages.h"

/*
 * @pages were charged one by one before they were pinned: makes that what they keep. Errors of
 * ock_charge_resize(), -ENOMEM; then the charge is as before.
 */
int ock_folios_charge(struct ock_pages *pages, const struct ock_limits *limits);

/*
 * Gives back what is kept by @pages alone, while they are still pinned. The rest, single
 * pages, is left in pages->charge.
 */
void ock_folios_uncharge(struct ock_pages *pages);

#endif
