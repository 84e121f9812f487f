/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_AREA_H
#define OC_AREA_H

/*
 * What lies where in a rank's area of the control segment. The segment is
 * sparse: a page costs memory only once somebody has touched it, so generous
 * offsets cost address space alone.
 */

#define OC_AREA_BOARD_OFF	0x000000u /* boards: lib/exec/board.h */
#define OC_AREA_BOARD_BYTES	0x100000u
#define OC_AREA_REGION_OFF	0x100000u /* region table and segments: lib/region/region.h */
#define OC_AREA_REGION_BYTES	0x0e0000u
#define OC_AREA_STAGE_OFF	0x1e0000u /* staging channel: lib/access/mech_staged.c */
#define OC_AREA_STAGE_BYTES	0x090000u
#define OC_AREA_PIN_CACHE_OFF	0x270000u /* kernel regions: lib/access/pin_cache.h */
#define OC_AREA_PIN_CACHE_BYTES 0x010000u
#define OC_AREA_HELP_OFF	0x280000u /* copies of messages by both ends: procvm/help.h */
#define OC_AREA_HELP_BYTES	0x001000u
#define OC_AREA_RMA_OFF		0x281000u /* who may access its windows: mpi/rma_window.c */
#define OC_AREA_RMA_BYTES	0x041000u
#define OC_AREA_PRIVATE_OFF	0x2c2000u /* private memory peers copy: lib/access/private_pages.h */
#define OC_AREA_PRIVATE_BYTES	0x003000u
#define OC_AREA_BYTES		0x2c5000u

_Static_assert(OC_AREA_BOARD_OFF + OC_AREA_BOARD_BYTES == OC_AREA_REGION_OFF, "areas touch");
_Static_assert(OC_AREA_REGION_OFF + OC_AREA_REGION_BYTES == OC_AREA_STAGE_OFF, "areas touch");
_Static_assert(OC_AREA_STAGE_OFF + OC_AREA_STAGE_BYTES == OC_AREA_PIN_CACHE_OFF, "areas touch");
_Static_assert(OC_AREA_PIN_CACHE_OFF + OC_AREA_PIN_CACHE_BYTES == OC_AREA_HELP_OFF, "areas touch");
_Static_assert(OC_AREA_HELP_OFF + OC_AREA_HELP_BYTES == OC_AREA_RMA_OFF, "areas touch");
_Static_assert(OC_AREA_RMA_OFF + OC_AREA_RMA_BYTES == OC_AREA_PRIVATE_OFF, "areas touch");
_Static_assert(OC_AREA_PRIVATE_OFF + OC_AREA_PRIVATE_BYTES == OC_AREA_BYTES, "areas touch");

#endif
