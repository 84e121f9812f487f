/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MPI_SESSION_H
#define OC_MPI_SESSION_H

/* Programs without MPI_Init (MPI-4.1, 11.3). Any thread. */

#include <stdbool.h>

/* Whether this rank has come to its node by a session, or tried: MPI_Init has nothing to do then.
 */
bool oc_session_has_begun(void);

/* Whether the program has a session. */
bool oc_session_is_live(void);

/* At MPI_Finalize, once or again: ends what MPI_Init or, if none is left, sessions have begun. */
void oc_session_world_ends(void);

#endif
