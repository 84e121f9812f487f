/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CGROUP_H
#define OC_CGROUP_H

/*
 * Hands @look the text of file @name, such as "cpu.max", of each control group
 * (version 2) this process is in, from its own up to the root: a limit anywhere
 * above binds too. Groups without that file are left out. Does not allocate; any
 * thread.
 */
void oc_cgroup_walk(const char *name, void (*look)(const char *text, void *arg), void *arg);

#endif
