/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_PRINT_H
#define OC_MPI_PRINT_H

#include "record_layout.h"

/* Appends @record to the file @path as one line of JSON. 0 or -errno. */
int oc_record_print(const struct oc_record *record, const char *path);

#endif
