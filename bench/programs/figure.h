/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FIGURE_H
#define BENCH_FIGURE_H

/*
 * The result of a program that onecopy cannot help: one rate, larger is
 * better, summed over the ranks and printed by rank 0 as
 * "program,figure,unit". Collective over MPI_COMM_WORLD.
 */
void figure_print(const char *program, double rate, const char *unit);

/* The rank's i-th argument as a number, or @otherwise. */
double figure_argument(int argc, char **argv, int i, double otherwise);

#endif
