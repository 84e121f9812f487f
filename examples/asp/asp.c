// SPDX-License-Identifier: BSD-3-Clause
/*
 * All-pairs shortest paths by Floyd and Warshall's algorithm, the application
 * of the KNEM paper (Goglin and Moreaud, JPDC 2013, section 6.3): the distance
 * matrix lies in blocks of rows, one block a rank. Step by step the owner of the
 * next batch of rows relaxes these against each other and broadcasts them, and
 * every rank relaxes its other rows against all of them, from its caches. A
 * plain MPI program: it knows nothing of onecopy.
 *
 *     mpicc -O3 -march=native -o asp asp.c
 *     mpirun -n 8 ./asp [-w] graph.txt
 *
 * The graph is text: "nodes N", then "edge U V LENGTH" lines, vertices counted
 * from 0, both directions meant; other lines are skipped. -w puts a barrier
 * before each broadcast, so that the time ranks wait for each other and the
 * time the broadcast takes are told apart.
 *
 * Prints "name value" lines. Its checksum covers every distance and does not
 * depend on the number of ranks.
 */

#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No path known. Twice this still fits an int32_t. */
#define FAR (INT32_C(1) << 29)
/* Rows in a broadcast, at most. */
#define BATCH 64
/* Columns at a time: those of a batch, 256 KiB, stay in the second-level cache. */
#define TILE 1024

struct edge {
	int32_t from;
	int32_t to;
	int32_t length;
};

struct graph {
	int32_t nodes;
	int32_t edges;
	struct edge *edge;
};

/* A rank's rows of the matrix: first .. first + rows - 1. */
struct block {
	int32_t nodes;
	int32_t first;
	int32_t rows;
	int32_t *distance;
};

struct times {
	double total;
	double bcast;
	double wait;
	int32_t bcasts;
};

static void die(const char *what)
{
	fprintf(stderr, "asp: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void *allocate(size_t count, size_t size)
{
	size_t bytes = count * size;
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		die("out of memory");
	return p;
}

static struct graph graph_read(const char *path)
{
	struct graph graph = {0};
	int32_t room = 0;
	char line[256];
	FILE *file = fopen(path, "r");

	if (!file)
		die("cannot open the graph");
	while (fgets(line, sizeof(line), file)) {
		struct edge e;

		if (sscanf(line, "nodes %" SCNd32, &graph.nodes) == 1)
			continue;
		if (sscanf(line, "edge %" SCNd32 " %" SCNd32 " %" SCNd32, &e.from, &e.to,
			   &e.length) != 3)
			continue;
		if (e.from < 0 || e.from >= graph.nodes || e.to < 0 || e.to >= graph.nodes ||
		    e.length < 0 || e.length >= FAR)
			die("an edge is out of range");
		if (graph.edges == room) {
			room = room ? 2 * room : 1024;
			graph.edge = realloc(graph.edge, (size_t)room * sizeof(*graph.edge));
			if (!graph.edge)
				die("out of memory");
		}
		graph.edge[graph.edges++] = e;
	}
	fclose(file);
	if (graph.nodes < 1)
		die("the graph has no nodes");
	return graph;
}

static struct graph graph_share(const char *path, int rank)
{
	struct graph graph = {0};
	int32_t head[2];

	if (rank == 0)
		graph = graph_read(path);
	head[0] = graph.nodes;
	head[1] = graph.edges;
	MPI_Bcast(head, 2, MPI_INT32_T, 0, MPI_COMM_WORLD);
	graph.nodes = head[0];
	graph.edges = head[1];
	if (rank != 0)
		graph.edge = allocate((size_t)graph.edges, sizeof(*graph.edge));
	MPI_Bcast(graph.edge, 3 * graph.edges, MPI_INT32_T, 0, MPI_COMM_WORLD);
	return graph;
}

static int32_t first_row(int32_t nodes, int rank, int ranks)
{
	return (int32_t)((int64_t)nodes * rank / ranks);
}

static int32_t *block_row(const struct block *block, int32_t row)
{
	return block->distance + (size_t)(row - block->first) * (size_t)block->nodes;
}

static void block_edge(struct block *block, int32_t from, int32_t to, int32_t length)
{
	int32_t *distance;

	if (from < block->first || from >= block->first + block->rows)
		return;
	distance = block_row(block, from) + to;
	if (length < *distance)
		*distance = length;
}

static struct block block_create(const struct graph *graph, int rank, int ranks)
{
	struct block block = {
		.nodes = graph->nodes,
		.first = first_row(graph->nodes, rank, ranks),
	};
	size_t cells;

	block.rows = first_row(graph->nodes, rank + 1, ranks) - block.first;
	cells = (size_t)block.rows * (size_t)block.nodes;
	block.distance = allocate(cells, sizeof(*block.distance));
	for (size_t i = 0; i < cells; i++)
		block.distance[i] = FAR;
	for (int32_t row = block.first; row < block.first + block.rows; row++)
		block_row(&block, row)[row] = 0;
	for (int32_t i = 0; i < graph->edges; i++) {
		const struct edge *e = &graph->edge[i];

		block_edge(&block, e->from, e->to, e->length);
		block_edge(&block, e->to, e->from, e->length);
	}
	return block;
}

static int32_t least(int32_t a, int32_t b)
{
	return a < b ? a : b;
}

/*
 * Some columns of a row against those of `count` vertices it may pass, which
 * are `to_via` away. Four of them at once, which saves three of four loads and
 * stores of the row itself.
 */
static void relax(int32_t *restrict row, int32_t columns, const int32_t *restrict via,
		  int32_t nodes, const int32_t *restrict to_via, int32_t count)
{
	int32_t k = 0;

	for (; k + 4 <= count; k += 4) {
		const int32_t *a = via + (size_t)k * (size_t)nodes;
		const int32_t *b = a + nodes;
		const int32_t *c = b + nodes;
		const int32_t *d = c + nodes;

		for (int32_t j = 0; j < columns; j++)
			row[j] = least(row[j],
				       least(least(to_via[k] + a[j], to_via[k + 1] + b[j]),
					     least(to_via[k + 2] + c[j], to_via[k + 3] + d[j])));
	}
	for (; k < count; k++) {
		const int32_t *a = via + (size_t)k * (size_t)nodes;

		for (int32_t j = 0; j < columns; j++)
			row[j] = least(row[j], to_via[k] + a[j]);
	}
}

/* Rows k .. k + count - 1, against each other. */
static void relax_batch(const struct block *block, int32_t k, int32_t count)
{
	for (int32_t via = k; via < k + count; via++) {
		for (int32_t row = k; row < k + count; row++) {
			int32_t *mine = block_row(block, row);
			int32_t to_via = mine[via];

			if (row != via)
				relax(mine, block->nodes, block_row(block, via), block->nodes,
				      &to_via, 1);
		}
	}
}

/* All rows but these, against these. These are up to date among themselves, so
 * their order is of no account, nor whether `to_via` is from before a tile or after. */
static void relax_others(const struct block *block, const int32_t *via, int32_t k, int32_t count)
{
	int32_t to_via[BATCH];

	for (int32_t from = 0; from < block->nodes; from += TILE) {
		int32_t columns = least(TILE, block->nodes - from);

		for (int32_t row = block->first; row < block->first + block->rows; row++) {
			int32_t *mine = block_row(block, row);

			if (row >= k && row < k + count)
				continue;
			memcpy(to_via, mine + k, (size_t)count * sizeof(*to_via));
			relax(mine + from, columns, via + from, block->nodes, to_via, count);
		}
	}
}

static void show_progress(int32_t done, int32_t nodes)
{
	static int32_t shown = -1;
	int32_t percent = (int32_t)((int64_t)100 * done / nodes);

	if (percent == shown)
		return;
	shown = percent;
	fprintf(stderr, "asp: %" PRId32 " %%%c", percent, isatty(STDERR_FILENO) ? '\r' : '\n');
}

static struct times shortest_paths(struct block *block, int rank, int ranks, bool wait_apart)
{
	int32_t *received = allocate(BATCH * (size_t)block->nodes, sizeof(*received));
	struct times times = {0};
	int32_t count;
	double began;
	int owner = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	began = MPI_Wtime();
	for (int32_t k = 0; k < block->nodes; k += count) {
		int32_t *via = received;
		double before;

		while (k >= first_row(block->nodes, owner + 1, ranks))
			owner++;
		count = least(BATCH, first_row(block->nodes, owner + 1, ranks) - k);
		if (owner == rank) {
			via = block_row(block, k);
			relax_batch(block, k, count);
		}
		if (wait_apart) {
			before = MPI_Wtime();
			MPI_Barrier(MPI_COMM_WORLD);
			times.wait += MPI_Wtime() - before;
		}
		before = MPI_Wtime();
		MPI_Bcast(via, count * block->nodes, MPI_INT32_T, owner, MPI_COMM_WORLD);
		times.bcast += MPI_Wtime() - before;
		times.bcasts++;
		relax_others(block, via, k, count);
		if (rank == 0)
			show_progress(k + count, block->nodes);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	times.total = MPI_Wtime() - began;
	free(received);
	return times;
}

/* Rows are hashed one by one (FNV-1a over words) and the hashes added up, so
 * that it does not matter which rank has which row. */
static uint64_t checksum(const struct block *block)
{
	uint64_t sum = 0;
	uint64_t all;

	for (int32_t row = block->first; row < block->first + block->rows; row++) {
		const int32_t *distance = block_row(block, row);
		uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)row;

		for (int32_t j = 0; j < block->nodes; j++)
			hash = (hash ^ (uint32_t)distance[j]) * UINT64_C(0x100000001b3);
		sum += hash;
	}
	MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	return all;
}

/* The two vertices farthest from each other; the lowest numbers among equals. */
static void print_farthest(const struct block *block, int rank, int ranks)
{
	int32_t best[3] = {-1, 0, 0};
	int32_t *every = rank ? NULL : allocate(3 * (size_t)ranks, sizeof(*every));

	for (int32_t row = block->first; row < block->first + block->rows; row++) {
		const int32_t *distance = block_row(block, row);

		for (int32_t j = 0; j < block->nodes; j++) {
			if (distance[j] < FAR && distance[j] > best[0]) {
				best[0] = distance[j];
				best[1] = row;
				best[2] = j;
			}
		}
	}
	MPI_Gather(best, 3, MPI_INT32_T, every, 3, MPI_INT32_T, 0, MPI_COMM_WORLD);
	if (rank != 0)
		return;
	for (int i = 0; i < ranks; i++)
		if (every[3 * i] > best[0])
			memcpy(best, every + (size_t)3 * i, sizeof(best));
	printf("farthest %" PRId32 " %" PRId32 " %" PRId32 "\n", best[1], best[2], best[0]);
	free(every);
}

/* Seconds a rank spent, on average: a rank that waits is a core that idles. */
static double mean(double seconds, int ranks)
{
	double sum;

	MPI_Reduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	return sum / ranks;
}

int main(int argc, char **argv)
{
	bool wait_apart = false;
	struct graph graph;
	struct block block;
	struct times times;
	uint64_t sum;
	int rank;
	int ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc > 1 && !strcmp(argv[1], "-w")) {
		wait_apart = true;
		argv++;
		argc--;
	}
	if (argc != 2)
		die("usage: asp [-w] graph.txt");

	graph = graph_share(argv[1], rank);
	block = block_create(&graph, rank, ranks);
	times = shortest_paths(&block, rank, ranks, wait_apart);

	times.bcast = mean(times.bcast, ranks);
	times.wait = mean(times.wait, ranks);
	sum = checksum(&block);
	if (rank == 0) {
		printf("ranks %d\nnodes %" PRId32 "\nedges %" PRId32 "\n", ranks, graph.nodes,
		       graph.edges);
		printf("row_bytes %zu\nbcasts %" PRId32 "\n", (size_t)graph.nodes * sizeof(int32_t),
		       times.bcasts);
		printf("total_s %.6f\nbcast_s %.6f\n", times.total, times.bcast);
		if (wait_apart)
			printf("wait_s %.6f\n", times.wait);
		printf("checksum %016" PRIx64 "\n", sum);
	}
	print_farthest(&block, rank, ranks);

	free(block.distance);
	free(graph.edge);
	MPI_Finalize();
	return 0;
}
