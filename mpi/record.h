/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_RECORD_H
#define OC_MPI_RECORD_H

/* This rank's record of what it has done, from MPI_Init to MPI_Finalize. */

#include <stdbool.h>

#include "record_layout.h"

/* This rank's, or NULL: nobody asked for statistics, or there was no place for them. */
extern struct oc_record *oc_record;

/* Before the MPI's MPI_Init: makes it if ONECOPY_STATS is set. Whether it is a new one: sessions
 * that follow others go on with what is in a file. */
bool oc_record_open(void);

/* After it, as soon as it is known whether onecopy helps. */
void oc_record_start(void);

/* At MPI_Finalize; a record that is in no file is written as a line of JSON. Counts no more. */
void oc_record_finish(void);

/* At MPI_Abort. */
void oc_record_abort(int code);

#endif
