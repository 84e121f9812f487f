/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_PROC_H
#define OC_TEST_PROC_H

/*
 * One mechanism more than the library has, for a second build of it and of what the tests
 * run over it (tests/meson.build), which includes this before anything else: in place of
 * a bit and a word in onecopy.h. The rest is mech_proc.c, and its line in proc_table.c.
 */
#define OC_MECH_PROC  0x20u
#define OC_MECH_COUNT 6
#define OC_MECH_NAMES "heap", "map", "kcopy", "cma", "staged", "proc"

#endif
