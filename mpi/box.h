/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_BOX_H
#define OC_MPI_BOX_H

/*
 * Parts of arrays of several dimensions, as MPI_Type_create_subarray and MPI_Type_create_darray
 * choose them: in each dimension some stretches. @of: the integers of MPI_Type_get_contents. As
 * oc_runs_add.
 */

#include "runs.h"

int oc_box_subarray(struct oc_runs *runs, const struct oc_runs *element, const int64_t *of);

/* Asks the MPI once how it lays out the parts of arrays, before any of these. */
void oc_box_setup(void);

/* MPI 4.1, 5.1.4. -ENOTSUP: the MPI has it otherwise (docs/mpi.md, Intel MPI). */
int oc_box_darray(struct oc_runs *runs, const struct oc_runs *element, const int64_t *of);

#endif
