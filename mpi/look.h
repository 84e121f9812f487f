/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_LOOK_H
#define OC_LOOK_H

/*
 * Ranks that wait inside the MPI look for copies of their peers' messages to help with
 * (procvm/help.h), unless that would do harm, and after their pages (heap/promote.h), where its
 * progress engine calls whoever asks for it: Open MPI's. In others nothing happens. After
 * oc_procvm_begin() and before oc_procvm_end(), by the thread that calls these.
 */
void oc_look_begin(void);
void oc_look_end(void);

#endif
