// SPDX-License-Identifier: BSD-3-Clause
/*
 * The wave equation in a duct that closes to a ring: leapfrog in time, the
 * seven-point stencil in space. The grid's planes lie in slabs, one a rank, and
 * before each step neighbours exchange the faces of their slabs. A plain MPI
 * program: it knows nothing of onecopy.
 *
 *     mpicc -O3 -march=native -o wave wave.c -lm
 *     mpirun -n 8 ./wave [-g PLANESxROWSxCOLUMNS] [-s STEPS]
 *
 * Planes are counted along the ring; at the rim of each the field is zero.
 * Without -g a rank has four: thin slabs are what a problem comes to when it
 * is spread over all the cores that still make it faster.
 *
 * The wave that travels round is one that the scheme carries exactly, and the
 * result must be that wave. Prints "name value" lines. The checksum covers
 * every bit of the field and does not depend on the number of ranks.
 */

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The square of the Courant number, stable up to 1/3. Times a power of two is
 * exact, so it makes no difference whether a compiler fuses it with a sum.
 */
#define COURANT2 0.25
/* What rounding may add to the error in a step; the field is 1 at most. */
#define TOLERANCE 1e-13

enum { UP, DOWN };

struct grid {
	int planes;
	int rows;
	int columns;
	int steps;
};

/* A rank's planes, first .. first + planes - 1, with a ghost at either end. */
struct slab {
	struct grid grid;
	size_t face; /* points in a plane */
	int first;
	int planes;
	int above;
	int below;
	double *profile; /* of the wave in a plane: zero at the rim */
	double *now;
	double *next; /* the step before now, until it is overwritten */
};

struct times {
	double total;
	double halo;
};

static void die(const char *what)
{
	fprintf(stderr, "wave: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static struct grid grid_read(int argc, char **argv, int ranks)
{
	struct grid grid = {.planes = 4 * ranks, .rows = 256, .columns = 320, .steps = 5000};
	bool right = true;
	char more;
	int option;

	opterr = 0;
	while ((option = getopt(argc, argv, "g:s:")) != -1) {
		if (option == 'g')
			right &= sscanf(optarg, "%6dx%6dx%6d%c", &grid.planes, &grid.rows,
					&grid.columns, &more) == 3;
		else if (option == 's')
			right &= sscanf(optarg, "%8d%c", &grid.steps, &more) == 1;
		else
			right = false;
	}
	if (!right || optind != argc)
		die("usage: wave [-g PLANESxROWSxCOLUMNS] [-s STEPS]");
	if (grid.planes < ranks)
		die("fewer planes than ranks");
	if (grid.rows < 3 || grid.columns < 3)
		die("a plane needs 3 rows and 3 columns: a point inside its rim");
	if ((int64_t)grid.rows * grid.columns > INT_MAX)
		die("a plane is too large for one message");
	if (grid.steps < 1)
		die("fewer steps than one");
	return grid;
}

static double *allocate(size_t points)
{
	double *field = malloc(points * sizeof(*field));

	if (!field)
		die("out of memory");
	return field;
}

/* 1 is a rank's first plane; 0 and planes + 1 are the ghosts. */
static double *plane_at(const struct slab *slab, double *field, int plane)
{
	return field + (size_t)plane * slab->face;
}

static int first_plane(const struct grid *grid, int rank, int ranks)
{
	return (int)((int64_t)grid->planes * rank / ranks);
}

/*
 * The wave in a plane, as a multiple of its profile. How far it moves in a step
 * is the scheme's dispersion relation: sin(phase / 2) is the Courant number
 * times the length of (s, t, u).
 */
static double height(const struct slab *slab, int plane, int step)
{
	const struct grid *grid = &slab->grid;
	double s = sin(M_PI / grid->planes);
	double t = sin(M_PI / 2 / (grid->rows - 1));
	double u = sin(M_PI / 2 / (grid->columns - 1));
	double phase = 2 * asin(sqrt(COURANT2 * (s * s + t * t + u * u)));

	return cos(2 * M_PI * (slab->first + plane - 1) / grid->planes - step * phase);
}

static struct slab slab_create(const struct grid *grid, int rank, int ranks)
{
	struct slab slab = {
		.grid = *grid,
		.face = (size_t)grid->rows * (size_t)grid->columns,
		.first = first_plane(grid, rank, ranks),
		.above = (rank + 1) % ranks,
		.below = (rank + ranks - 1) % ranks,
	};
	double *profile = allocate(slab.face);

	memset(profile, 0, slab.face * sizeof(*profile));
	for (int y = 1; y < grid->rows - 1; y++)
		for (int x = 1; x < grid->columns - 1; x++)
			profile[(ptrdiff_t)y * grid->columns + x] =
				sin(M_PI * y / (grid->rows - 1)) *
				sin(M_PI * x / (grid->columns - 1));
	slab.profile = profile;
	slab.planes = first_plane(grid, rank + 1, ranks) - slab.first;
	slab.now = allocate(((size_t)slab.planes + 2) * slab.face);
	slab.next = allocate(((size_t)slab.planes + 2) * slab.face);
	for (int plane = 1; plane <= slab.planes; plane++) {
		double *now = plane_at(&slab, slab.now, plane);
		double *before = plane_at(&slab, slab.next, plane);
		double heights[] = {height(&slab, plane, 0), height(&slab, plane, -1)};

		for (size_t i = 0; i < slab.face; i++) {
			now[i] = heights[0] * profile[i];
			before[i] = heights[1] * profile[i];
		}
	}
	return slab;
}

/* A rank's last plane is the lower ghost of the rank above, its first one the
 * upper ghost of the rank below. */
static void exchange_halos(const struct slab *slab)
{
	int points = (int)slab->face;
	double *field = slab->now;
	MPI_Request requests[4];

	MPI_Irecv(plane_at(slab, field, 0), points, MPI_DOUBLE, slab->below, UP, MPI_COMM_WORLD,
		  &requests[0]);
	MPI_Irecv(plane_at(slab, field, slab->planes + 1), points, MPI_DOUBLE, slab->above, DOWN,
		  MPI_COMM_WORLD, &requests[1]);
	MPI_Isend(plane_at(slab, field, slab->planes), points, MPI_DOUBLE, slab->above, UP,
		  MPI_COMM_WORLD, &requests[2]);
	MPI_Isend(plane_at(slab, field, 1), points, MPI_DOUBLE, slab->below, DOWN, MPI_COMM_WORLD,
		  &requests[3]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void step_row(double *restrict next, const double *restrict now, ptrdiff_t columns,
		     ptrdiff_t face)
{
	for (ptrdiff_t x = 1; x < columns - 1; x++) {
		double around = now[x - 1] + now[x + 1] + now[x - columns] + now[x + columns] +
				now[x - face] + now[x + face];

		next[x] = (2 - 6 * COURANT2) * now[x] - next[x] + COURANT2 * around;
	}
}

static void step(struct slab *slab)
{
	ptrdiff_t columns = slab->grid.columns;
	double *now = slab->now;

	for (int plane = 1; plane <= slab->planes; plane++)
		for (int y = 1; y < slab->grid.rows - 1; y++)
			step_row(plane_at(slab, slab->next, plane) + y * columns,
				 plane_at(slab, now, plane) + y * columns, columns,
				 (ptrdiff_t)slab->face);
	slab->now = slab->next;
	slab->next = now;
}

static void show_progress(int done, int steps)
{
	static int shown = -1;
	int percent = (int)((int64_t)100 * done / steps);

	if (percent == shown)
		return;
	shown = percent;
	fprintf(stderr, "wave: %d %%%c", percent, isatty(STDERR_FILENO) ? '\r' : '\n');
}

static struct times run(struct slab *slab, int rank)
{
	struct times times = {0};
	double began;

	MPI_Barrier(MPI_COMM_WORLD);
	began = MPI_Wtime();
	for (int i = 0; i < slab->grid.steps; i++) {
		double before = MPI_Wtime();

		exchange_halos(slab);
		times.halo += MPI_Wtime() - before;
		step(slab);
		if (rank == 0)
			show_progress(i + 1, slab->grid.steps);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	times.total = MPI_Wtime() - began;
	return times;
}

/* Planes are hashed one by one (FNV-1a over words) and the hashes added up, so
 * that it does not matter which rank has which plane. `error` is the largest
 * difference from the wave. */
static uint64_t checksum(const struct slab *slab, double *error)
{
	uint64_t sum = 0;

	*error = 0;
	for (int plane = 1; plane <= slab->planes; plane++) {
		const double *values = plane_at(slab, slab->now, plane);
		double exact = height(slab, plane, slab->grid.steps);
		uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)(slab->first + plane);

		for (size_t i = 0; i < slab->face; i++) {
			double off = fabs(values[i] - exact * slab->profile[i]);
			uint64_t bits;

			memcpy(&bits, &values[i], sizeof(bits));
			hash = (hash ^ bits) * UINT64_C(0x100000001b3);
			if (!(off <= *error))
				*error = isnan(off) ? INFINITY : off;
		}
		sum += hash;
	}
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return sum;
}

int main(int argc, char **argv)
{
	struct grid grid;
	struct slab slab;
	struct times times;
	uint64_t sum;
	double error;
	int rank;
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (rank == 0)
		grid = grid_read(argc, argv, ranks);
	MPI_Bcast(&grid, sizeof(grid), MPI_BYTE, 0, MPI_COMM_WORLD);
	slab = slab_create(&grid, rank, ranks);
	times = run(&slab, rank);
	sum = checksum(&slab, &error);

	/* Of the ranks' times in exchanges, the mean: a rank that waits is a core that idles. */
	MPI_Allreduce(MPI_IN_PLACE, &times.halo, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("ranks %d\npoints %dx%dx%d\nsteps %d\n", ranks, grid.planes, grid.rows,
		       grid.columns, grid.steps);
		printf("halo_bytes %zu\n", slab.face * sizeof(double));
		printf("total_s %.6f\nhalo_s %.6f\n", times.total, times.halo / ranks);
		printf("error %.1e\nchecksum %016" PRIx64 "\n", error, sum);
		if (!(error <= TOLERANCE * grid.steps))
			die("the result is not the wave it must be");
	}

	free(slab.next);
	free(slab.now);
	free(slab.profile);
	MPI_Finalize();
	return 0;
}
