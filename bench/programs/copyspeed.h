/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COPYSPEED_H
#define BENCH_COPYSPEED_H

/*
 * The copy speed of this node with all ranks copying at once: what no collective
 * that must copy its bytes can pass. A virtual machine's memory changes speed
 * within seconds, so it is asked for right before and after what is compared.
 *
 * Each rank copies blocks of 1 MiB between two arenas of its own, those of all
 * ranks together four times the caches (see collbench.c for why), by the best of
 * memcpy and every kind of non-temporal store the processor has.
 */

#include <stddef.h>

/* Collective over MPI_COMM_WORLD, like all here. @cache: bytes of last level
 * cache on the node. Finds the best way; aborts the job without memory. */
void copyspeed_init(size_t cache);
void copyspeed_deinit(void);

/* Bytes per second of all ranks together, now: one pass, some milliseconds. The
 * same value on every rank. */
double copyspeed_measure(void);

#endif
