/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RANK_H
#define RANK_H

#include <stdlib.h>

/* This process's rank as its launcher says it before MPI_Init: Hydra, or Open MPI's. */
static inline const char *rank_said(void)
{
	const char *rank = getenv("PMI_RANK");

	return rank ? rank : getenv("OMPI_COMM_WORLD_RANK");
}

#endif
