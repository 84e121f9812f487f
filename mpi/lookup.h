/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_LOOKUP_H
#define OC_MPI_LOOKUP_H

/*
 * dlsym() of programs that look MPI up in its library: Python's ctypes, Julia, whatever loads an
 * MPI by dlopen(). Where they would get a function of the MPI that is interposed, they get ours.
 * All else is the C library's answer: other names, other libraries, RTLD_DEFAULT and RTLD_NEXT.
 */

/* dlsym() as if we had none. */
void *oc_lookup_next(void *handle, const char *name);

#endif
