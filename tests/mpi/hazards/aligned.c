// SPDX-License-Identifier: BSD-3-Clause
/* What MPI_Alloc_mem gives is aligned as the info asks, beyond a page too. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	int failed = 0;

	MPI_Init(&argc, &argv);
	for (size_t align = 64; align <= (size_t)4 << 20; align *= 4) {
		char text[32];
		MPI_Info info;
		void *p[4];

		snprintf(text, sizeof(text), "%zu", align);
		MPI_Info_create(&info);
		MPI_Info_set(info, "mpi_minimum_memory_alignment", text);
		for (int i = 0; i < 4; i++) {
			MPI_Alloc_mem(10000 + 70000 * i, info, &p[i]);
			memset(p[i], 1, 10000);
			if ((uintptr_t)p[i] % align) {
				fprintf(stderr, "%p is not aligned to %zu\n", p[i], align);
				failed = 1;
			}
		}
		for (int i = 0; i < 4; i++)
			MPI_Free_mem(p[i]);
		MPI_Info_free(&info);
	}
	MPI_Finalize();
	return failed;
}
