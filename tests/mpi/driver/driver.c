// SPDX-License-Identifier: BSD-3-Clause
/*
 * driver SCRIPT OUT [ordered]
 *
 * Does what the script says, line by line, on every rank, checks all that can
 * be checked on the spot, and writes to OUT.<rank> a digest of what each line
 * received. Lines, with whole numbers but where names stand:
 *
 *   init LEVEL                            single or multiple; first
 *   call NAME COMM ROOT COUNT TYPE OP INPLACE ALIGN KINDS LAYOUTS CROSSED SEED
 *   ibcast COMM ROOT BYTES SEED           outstanding until the next wait
 *   wait
 *   churn N                               makes, uses and frees N communicators
 *   leak                                  makes and uses one, never frees it
 *   threads T N                           T threads, N calls each on their own
 *
 * ordered: sums and products of floats must be folded in rank order.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "memory.h"
#include "side.h"

#define COMMS	7
#define THREADS 4

static MPI_Comm comms[COMMS];
static int world_rank, world_size;
static bool ordered;

static struct {
	MPI_Request request;
	unsigned char *data;
	int bytes;
	int root;
	int rank;
	unsigned long seed;
} pending;

static void die(int line, const char *what)
{
	fprintf(stderr, "line %d, rank %d: %s\n", line, world_rank, what);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

static void make_comms(void)
{
	comms[0] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &comms[2]);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[3]);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank == world_size - 1 ? MPI_UNDEFINED : 0, world_rank,
		       &comms[4]);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank / 2, world_rank, &comms[5]);
	MPI_Comm_split(MPI_COMM_WORLD, world_rank > 0, -world_rank, &comms[6]);
}

static void free_comms(void)
{
	for (int i = 1; i < COMMS; i++)
		if (comms[i] != MPI_COMM_NULL)
			MPI_Comm_free(&comms[i]);
}

static unsigned int set_of(int line, char *list, int (*find)(const char *))
{
	unsigned int set = 0;
	char *save;

	for (char *name = strtok_r(list, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		int at = find(name);

		if (at < 0)
			die(line, name);
		set |= 1u << at;
	}
	return set;
}

static MPI_Comm comm_of(int line, int index)
{
	if (index < 0 || index >= COMMS)
		die(line, "no such communicator");
	return comms[index];
}

static void do_call(int line, const char *text, FILE *out)
{
	char name[32], type[32], op[32], kinds[200], layouts[200];
	struct call call = {.line = line};
	int comm_index, in_place, crossed, size;
	unsigned long seed;
	MPI_Comm comm;

	if (sscanf(text, "call %31s %d %d %ld %31s %31s %d %d %199s %199s %d %lu", name,
		   &comm_index, &call.root, &call.count, type, op, &in_place, &call.align, kinds,
		   layouts, &crossed, &seed) != 12)
		die(line, "cannot read this call");
	call.e = element_find(type);
	call.op = element_find_op(op);
	if (call_find(name) < 0 || !call.e || call.op < 0)
		die(line, "unknown name");
	call.name = (enum call_name)call_find(name);
	call.in_place = in_place;
	call.crossed = crossed;
	call.seed = seed;
	call.kinds = set_of(line, kinds, memory_find);
	call.layouts = set_of(line, layouts, side_layout_find);
	comm = comm_of(line, comm_index);
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_size(comm, &size);
	call.root %= size;
	fprintf(out, "%d %016lx\n", line, (unsigned long)call_do(&call, comm, ordered));
}

static void finish_pending(int line)
{
	if (!pending.data)
		return;
	MPI_Wait(&pending.request, MPI_STATUS_IGNORE);
	for (int i = 0; i < pending.bytes; i++)
		if (pending.data[i] != (unsigned char)element_hash(pending.seed, 9, (uint64_t)i))
			die(line, "wrong data from MPI_Ibcast");
	free(pending.data);
	pending.data = NULL;
}

static void start_ibcast(int line, const char *text)
{
	int comm_index, root, size;
	MPI_Comm comm;

	finish_pending(line);
	if (sscanf(text, "ibcast %d %d %d %lu", &comm_index, &root, &pending.bytes,
		   &pending.seed) != 4)
		die(line, "cannot read this ibcast");
	comm = comm_of(line, comm_index);
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &pending.rank);
	pending.root = root % size;
	pending.data = malloc((size_t)pending.bytes + 1);
	if (!pending.data)
		die(line, "no memory");
	for (int i = 0; i < pending.bytes; i++)
		pending.data[i] =
			pending.rank == pending.root
				? (unsigned char)element_hash(pending.seed, 9, (uint64_t)i)
				: 0;
	MPI_Ibcast(pending.data, pending.bytes, MPI_BYTE, pending.root, comm, &pending.request);
}

/* A few large calls on a communicator. */
static void use(int line, MPI_Comm comm, uint64_t seed)
{
	static const enum call_name names[] = {CALL_BCAST, CALL_ALLREDUCE, CALL_ALLTOALL,
					       CALL_GATHERV, CALL_BARRIER};
	int size;

	MPI_Comm_size(comm, &size);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct call call = {.line = line,
				    .name = names[i],
				    .root = (int)(seed % (uint64_t)size),
				    .count = 4099,
				    .e = element_find("int"),
				    .op = OP_SUM,
				    .kinds = 1u << MEMORY_HEAP,
				    .layouts = 1u << LAYOUT_PLAIN,
				    .seed = seed};

		call_do(&call, comm, ordered);
	}
}

static void churn(int line, int n)
{
	MPI_Comm kept = MPI_COMM_NULL, comm;

	for (int i = 0; i < n; i++) {
		if (i % 3)
			MPI_Comm_split(MPI_COMM_WORLD, (world_rank + i) % 3 / 2, world_rank, &comm);
		else
			MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		use(line, comm, (uint64_t)i);
		if (i % 5 == 4 && kept != MPI_COMM_NULL) {
			use(line, kept, (uint64_t)i);
			MPI_Comm_free(&kept);
		}
		if (kept == MPI_COMM_NULL)
			kept = comm;
		else
			MPI_Comm_free(&comm);
	}
	if (kept != MPI_COMM_NULL)
		MPI_Comm_free(&kept);
}

static void leak(int line)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	use(line, comm, 1);
}

struct worker {
	pthread_t thread;
	MPI_Comm comm;
	int line;
	int number;
	int calls;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < w->calls; i++)
		use(w->line, w->comm, (uint64_t)(w->number * 1000 + i));
	return NULL;
}

static void run_threads(int line, int threads, int calls)
{
	struct worker workers[THREADS];

	if (threads < 1 || threads > THREADS)
		die(line, "too many threads");
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){.line = line, .number = i, .calls = calls};
		MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -world_rank : world_rank,
			       &workers[i].comm);
	}
	for (int i = 0; i < threads; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die(line, "no thread");
	for (int i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < threads; i++)
		MPI_Comm_free(&workers[i].comm);
}

static void do_line(int line, const char *text, FILE *out)
{
	int a, b;

	if (!strncmp(text, "call ", 5))
		do_call(line, text, out);
	else if (!strncmp(text, "ibcast ", 7))
		start_ibcast(line, text);
	else if (!strncmp(text, "wait", 4))
		finish_pending(line);
	else if (sscanf(text, "churn %d", &a) == 1)
		churn(line, a);
	else if (!strncmp(text, "leak", 4))
		leak(line);
	else if (sscanf(text, "threads %d %d", &a, &b) == 2)
		run_threads(line, a, b);
	else if (strncmp(text, "init ", 5))
		die(line, "cannot read this line");
}

int main(int argc, char **argv)
{
	char text[1024], path[1024];
	FILE *script, *out;
	int level = MPI_THREAD_SINGLE, got;

	if (argc < 3)
		return 64;
	script = fopen(argv[1], "r");
	if (!script)
		return 66;
	if (fgets(text, sizeof(text), script) && !strncmp(text, "init multiple", 13))
		level = MPI_THREAD_MULTIPLE;
	rewind(script);
	if (level == MPI_THREAD_SINGLE)
		MPI_Init(&argc, &argv);
	else
		MPI_Init_thread(&argc, &argv, level, &got);
	ordered = argc > 3;
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	snprintf(path, sizeof(path), "%s.%d", argv[2], world_rank);
	out = fopen(path, "w");
	if (!out)
		die(0, path);
	setvbuf(out, NULL, _IOLBF, 0); /* how far a rank came, should it hang */
	element_setup();
	make_comms();
	for (int line = 1; fgets(text, sizeof(text), script); line++)
		do_line(line, text, out);
	finish_pending(-1);
	free_comms();
	element_teardown();
	fclose(out);
	fclose(script);
	MPI_Finalize();
	return 0;
}
