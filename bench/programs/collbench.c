// SPDX-License-Identifier: BSD-3-Clause
/*
 * collbench: times MPI collectives over buffers that are used the way programs
 * use them: written by their owner, then communicated once.
 *
 * A rank's buffers are slots of two large arenas, malloc()ed or of the kind that
 * --memory says. One pass prepares every slot (send buffers written anew, receive
 * buffers spoiled), synchronises, and times a loop of calls, each on the next
 * slot. Preparing is outside the timed window; the first and the last pass of a
 * cell are verified word by word.
 *
 * Off-cache, the slots of all ranks together are FACTOR times the node's last
 * level caches, and every slot is prepared in the order of use, so a slot was
 * last touched that many bytes ago: even under random replacement only
 * exp(-FACTOR) = 2 % of it survives, against 13 % for the customary factor 2.
 * Where ranks share a core they are CROWDED_BYTES at least: the scheduler lets such
 * ranks leave a barrier some milliseconds apart, and a loop over the slots must
 * be long beside that.
 * Before a collective is timed it is run on the largest of them, SETTLE times on each and
 * SETTLE_TIME times as long as a repetition (where ranks share a core, of what each has of
 * it), for what is made once a buffer (registrations, mappings, huge pages, which some memory
 * gets only after it has been copied often) is no part of using it again: `onecopy bench
 * --what first-use` measures that.
 * --slots=N makes them fewer, as in programs that use a few buffers over and over;
 * that is done for each size then.
 * Warm, the slots of all ranks fit into WARM_BYTES and stay in the caches.
 *
 * The time of a call is that of the loop, divided, and the largest over the
 * ranks (IMB's way). It lets a rank run ahead of its peers where the operation
 * allows it, as programs do, and a call that makes everybody wait pays for it
 * here. The other way, --timing=call, starts each call with a barrier and
 * averages the slowest rank's time; how unevenly ranks leave a barrier (0.2 to
 * 1 us) is then part of the time, which blurs calls of a few us: at 16 KiB
 * prefer the loop.
 *
 * --beneath times every pass twice, in turns: as the program is linked, and by the
 * functions of the MPI's own library, past what is preloaded; these rows have the
 * mode "beneath". What a preloaded library costs a call that it passes on is some
 * ns, less than what differs between two runs of the same program.
 *
 * Off-cache, each repetition comes with the node's copy speed, measured right
 * before and after it; warm, with 0.
 */
#include "arena.h"
#include "collective.h"
#include "copyspeed.h"
#include "options.h"

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FACTOR	      4
#define CROWDED_BYTES ((size_t)1 << 30)
#define WARM_BYTES    (256u << 10)
#define LINE	      64
#define MAX_SLOTS     16384
#define MAX_WARM      64   /* slots */
#define MAX_CALLS     8192 /* calls of a pass */
#define SETTLE	      3
#define SETTLE_TIME   20 /* repetitions */

/* Of a size, rank by rank: [nranks] each. */
struct blocks {
	int *shares;
	int *counts;
	int *displs;
};

struct cell {
	const struct collective *op;
	struct call call; /* of slot 0 */
	size_t slots;
	size_t send_stride, recv_stride; /* words of this rank between slots */
};

/* Of one way. */
struct sum {
	double seconds;
	size_t errors;
};

static int rank, nranks;
static MPI_Win send_window = MPI_WIN_NULL, recv_window = MPI_WIN_NULL;

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* ---- slots -------------------------------------------------------------- */

static double ranks_of_a_core(void)
{
	double ranks = (double)nranks / (double)sysconf(_SC_NPROCESSORS_ONLN);

	return ranks > 1 ? ranks : 1;
}

static size_t working_set(const struct options *opt)
{
	size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	size_t wanted = opt->cache * FACTOR;

	if (opt->warm)
		return WARM_BYTES;
	if (ranks_of_a_core() > 1 && wanted < CROWDED_BYTES)
		wanted = CROWDED_BYTES;
	return wanted < memory / 4 ? wanted : memory / 4;
}

static size_t stride_words(size_t words, size_t least)
{
	size_t bytes = round_up(words * WORD, LINE);

	return words == 0 ? 0 : (bytes > least ? bytes : least) / WORD;
}

/* The same number of slots on every rank, so every rank counts all buffers. */
static void plan_cell(const struct options *opt, const struct collective *op, size_t bytes,
		      struct blocks *blocks, struct cell *cell)
{
	size_t words = bytes / WORD;
	size_t total = 0, buffers = 0, slots, least;

	for (int r = 0; r < nranks; r++) {
		blocks->shares[r] = (int)(words / (size_t)nranks) +
				    ((size_t)r < words % (size_t)nranks ? 1 : 0);
		blocks->counts[r] = (int)words;
		blocks->displs[r] = (int)words * r;
	}
	*cell = (struct cell){
		.op = op,
		.call =
			{
				.mpi = opt->ways[0],
				.words = words,
				.rank = rank,
				.nranks = nranks,
				.shares = blocks->shares,
				.counts = blocks->counts,
				.displs = blocks->displs,
			},
	};
	for (int r = 0; r < nranks; r++) {
		size_t send = collective_send_words(op, &cell->call, r);
		size_t recv = collective_recv_words(op, &cell->call, r);

		total += (stride_words(send, 0) + stride_words(recv, 0)) * WORD;
		buffers += (send > 0) + (recv > 0);
	}
	if (total == 0) {
		cell->slots = 1;
		return;
	}
	slots = working_set(opt) / total + (opt->warm ? 0 : 1);
	if (slots > (opt->warm ? MAX_WARM : MAX_SLOTS))
		slots = opt->warm ? MAX_WARM : MAX_SLOTS;
	if (slots < (opt->warm ? 1 : 2))
		slots = opt->warm ? 1 : 2;
	if (opt->most_slots && slots > opt->most_slots)
		slots = opt->most_slots;
	/* Few slots of small messages: spread them over the whole set. */
	least = round_up(working_set(opt) / slots / buffers, LINE);
	if (opt->warm || opt->most_slots)
		least = 0;
	cell->slots = slots;
	cell->send_stride = stride_words(collective_send_words(op, &cell->call, rank), least);
	cell->recv_stride = stride_words(collective_recv_words(op, &cell->call, rank), least);
}

static void make_arena(struct arena *arena, enum memory memory, size_t words, void *stack)
{
	if (arena_init(arena, memory, words * WORD, stack))
		return;
	fprintf(stderr, "collbench: rank %d: no such memory, %zu bytes\n", rank, words * WORD);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static struct call slot_call(const struct cell *cell, size_t i)
{
	size_t slot = i % cell->slots;
	struct call call = cell->call;

	call.send += slot * cell->send_stride;
	call.recv += slot * cell->recv_stride;
	call.send_at = (MPI_Aint)(slot * cell->send_stride);
	call.recv_at = (MPI_Aint)(slot * cell->recv_stride);
	return call;
}

static void prepare(const struct cell *cell, uint32_t stamp)
{
	for (size_t i = 0; i < cell->slots; i++) {
		struct call call = slot_call(cell, i);

		collective_prepare(cell->op, &call, stamp + (uint32_t)i);
	}
}

static size_t count_errors(const struct cell *cell, size_t calls, uint32_t stamp)
{
	unsigned long mine = 0, all = 0;

	for (size_t i = 0; i < cell->slots && i < calls; i++) {
		struct call call = slot_call(cell, i);

		mine += collective_errors(cell->op, &call, stamp + (uint32_t)i);
	}
	MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
	return all;
}

/* ---- time --------------------------------------------------------------- */

static double slowest(double seconds)
{
	double most;

	MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static double time_loop(const struct cell *cell, size_t calls)
{
	void (*run)(const struct call *call) = cell->op->run;
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (size_t i = 0; i < calls; i++) {
		struct call call = slot_call(cell, i);

		run(&call);
	}
	return MPI_Wtime() - start;
}

/* Sum over the calls of the slowest rank's time, on every rank. */
static double time_calls(const struct cell *cell, size_t calls)
{
	static double times[MAX_SLOTS], most[MAX_SLOTS];
	double sum = 0;

	for (size_t i = 0; i < calls; i++) {
		struct call call = slot_call(cell, i);
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		cell->op->run(&call);
		times[i] = MPI_Wtime() - start;
	}
	MPI_Allreduce(times, most, (int)calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	for (size_t i = 0; i < calls; i++)
		sum += most[i];
	return sum;
}

static double time_pass(const struct options *opt, const struct cell *cell, size_t calls)
{
	return opt->per_call ? time_calls(cell, calls) : time_loop(cell, calls);
}

static double copy_speed(const struct options *opt)
{
	return opt->warm ? 0 : copyspeed_measure();
}

static void settle(const struct options *opt, const struct cell *cell)
{
	double least = SETTLE_TIME * opt->seconds * ranks_of_a_core(), start = MPI_Wtime();

	for (int i = 0; i < SETTLE || slowest(MPI_Wtime() - start) < least; i++) {
		prepare(cell, 0);
		time_loop(cell, cell->slots);
	}
}

/*
 * Calls of a pass: all slots once when the time allows, warm ones many times.
 * Found by growing batches: some MPIs are a thousand times slower from the
 * call on that fills their buffers, so a few calls tell nothing.
 */
static size_t choose_calls(const struct options *opt, const struct cell *cell)
{
	size_t most = opt->warm || cell->op->origin == FROM_NOBODY ? MAX_CALLS : cell->slots;
	size_t batch = most < 2 ? most : 2;
	double seconds;

	prepare(cell, 0);
	slowest(time_loop(cell, batch)); /* first touches and connections */
	while ((seconds = slowest(time_loop(cell, batch))) < opt->seconds / 8 && batch < most)
		batch = batch * 8 < most ? batch * 8 : most;
	if (seconds / (double)batch * (double)most > opt->seconds)
		most = (size_t)(opt->seconds / seconds * (double)batch);
	return most > 0 ? most : 1;
}

static void print_row(const struct options *opt, const struct cell *cell, size_t way, int rep,
		      size_t calls, const struct sum *sum, double speed)
{
	const char *mode = way ? "beneath" : opt->warm ? "warm" : "off-cache";
	size_t messages = cell->op->echo ? 2 : 1;

	printf("%s,%zu,%d,%s,%d,%zu,%.4f,%zu,%.0f\n", cell->op->name, cell->call.words * WORD,
	       nranks, mode, rep, calls, sum->seconds * 1e6 / (double)(calls * messages),
	       sum->errors, speed);
}

/* Prepares, times and on demand verifies one pass of each way; they take turns in
 * going first. */
static void run_pass(const struct options *opt, const struct cell *cell, size_t calls, size_t pass,
		     bool verify, struct sum sums[WAYS])
{
	struct cell timed = *cell;

	for (size_t i = 0; i < opt->nways; i++) {
		size_t way = (i + pass) % opt->nways;
		uint32_t stamp = (uint32_t)((pass * WAYS + i) * cell->slots) + 1;

		timed.call.mpi = opt->ways[way];
		prepare(cell, stamp);
		sums[way].seconds += time_pass(opt, &timed, calls);
		/* Others may still be at this rank's buffers. */
		if (cell->op->window)
			MPI_Barrier(MPI_COMM_WORLD);
		if (verify)
			sums[way].errors += count_errors(cell, calls, stamp);
	}
}

static size_t run_cell(const struct options *opt, const struct cell *cell)
{
	size_t calls, passes, pass = 0, errors = 0;
	struct sum sums[WAYS] = {0};
	double start, before;

	if (opt->most_slots)
		settle(opt, cell);
	calls = choose_calls(opt, cell);
	start = MPI_Wtime();
	run_pass(opt, cell, calls, pass++, true, sums);
	passes = (size_t)((double)opt->nways * opt->seconds / slowest(MPI_Wtime() - start));
	if (passes < 1)
		passes = 1;
	before = copy_speed(opt);
	for (int rep = 0; rep < opt->reps; rep++) {
		double after;

		for (size_t way = 0; way < opt->nways; way++)
			sums[way].seconds = 0;
		for (size_t i = 1; i <= passes; i++)
			run_pass(opt, cell, calls, pass++, rep == opt->reps - 1 && i == passes,
				 sums);
		for (size_t way = 0; way < opt->nways; way++)
			sums[way].seconds = slowest(sums[way].seconds);
		after = copy_speed(opt);
		for (size_t way = 0; way < opt->nways && rank == 0; way++)
			print_row(opt, cell, way, rep, calls * passes, &sums[way],
				  (before + after) / 2);
		before = after;
	}
	if (rank == 0)
		fflush(stdout);
	for (size_t way = 0; way < opt->nways; way++)
		errors += sums[way].errors;
	return errors;
}

/* ---- windows ------------------------------------------------------------ */

/* Of both arenas, open to everybody from here on. */
static void open_windows(const struct options *opt, struct arena *send, struct arena *recv)
{
	bool wanted = false;

	for (size_t i = 0; i < opt->nops; i++)
		wanted |= opt->ops[i]->window;
	if (!wanted)
		return;
	MPI_Win_create(send->words, (MPI_Aint)(send->bytes - ARENA_PAGE), WORD, MPI_INFO_NULL,
		       MPI_COMM_WORLD, &send_window);
	MPI_Win_create(recv->words, (MPI_Aint)(recv->bytes - ARENA_PAGE), WORD, MPI_INFO_NULL,
		       MPI_COMM_WORLD, &recv_window);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, send_window);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, recv_window);
}

static void close_window(MPI_Win *window)
{
	if (*window == MPI_WIN_NULL)
		return;
	MPI_Win_unlock_all(*window);
	MPI_Win_free(window);
}

static struct cell cell_of(const struct options *opt, const struct collective *op, size_t bytes,
			   struct blocks *blocks, struct arena *send, struct arena *recv)
{
	struct cell cell;

	plan_cell(opt, op, op->origin == FROM_NOBODY ? 0 : bytes, blocks, &cell);
	cell.call.send = send->words;
	cell.call.recv = recv->words;
	cell.call.send_window = send_window;
	cell.call.recv_window = recv_window;
	return cell;
}

static size_t largest_size(const struct options *opt)
{
	size_t largest = 0;

	for (size_t i = 0; i < opt->nsizes; i++)
		if (opt->sizes[i] > largest)
			largest = opt->sizes[i];
	return largest;
}

static size_t run_cells(const struct options *opt, struct blocks *blocks, struct arena *send,
			struct arena *recv)
{
	size_t errors = 0;

	if (!opt->warm)
		copyspeed_init(opt->cache);
	if (rank == 0)
		printf("collective,bytes,ranks,mode,repetition,calls,usec,errors,copy_speed\n");
	for (size_t i = 0; i < opt->nops * opt->nsizes; i++) {
		const struct collective *op = opt->ops[i / opt->nsizes];
		struct cell cell;

		if ((op->origin == FROM_PARTNER || op->window) && nranks < 2)
			continue;
		if (op->origin == FROM_NOBODY && i % opt->nsizes)
			continue; /* no bytes: once is enough */
		if (i % opt->nsizes == 0 && !opt->warm && !opt->most_slots) {
			cell = cell_of(opt, op, largest_size(opt), blocks, send, recv);
			settle(opt, &cell);
		}
		cell = cell_of(opt, op, opt->sizes[i % opt->nsizes], blocks, send, recv);
		errors += run_cell(opt, &cell);
	}
	if (!opt->warm)
		copyspeed_deinit();
	return errors;
}

int main(int argc, char **argv)
{
	size_t send_words = 0, recv_words = 0, errors;
	void *stack[2] = {NULL, NULL};
	struct arena send, recv;
	struct options opt;
	struct blocks blocks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	options_parse(&opt, argc, argv);
	blocks.shares = calloc(3 * (size_t)nranks, sizeof(*blocks.shares));
	if (!blocks.shares)
		MPI_Abort(MPI_COMM_WORLD, 2);
	blocks.counts = blocks.shares + nranks;
	blocks.displs = blocks.counts + nranks;
	for (size_t i = 0; i < opt.nops * opt.nsizes; i++) {
		struct cell cell;

		plan_cell(&opt, opt.ops[i / opt.nsizes], opt.sizes[i % opt.nsizes], &blocks, &cell);
		if (cell.slots * cell.send_stride > send_words)
			send_words = cell.slots * cell.send_stride;
		if (cell.slots * cell.recv_stride > recv_words)
			recv_words = cell.slots * cell.recv_stride;
	}
	if (opt.memory == MEMORY_STACK) {
		if (!arena_stack_holds((send_words + recv_words) * WORD + 2 * ARENA_PAGE))
			options_refuse(
				"the stack is too small: raise ulimit -s, or take fewer slots",
				NULL);
		stack[0] = alloca(send_words * WORD + ARENA_PAGE);
		stack[1] = alloca(recv_words * WORD + ARENA_PAGE);
	}
	make_arena(&send, opt.memory, send_words, stack[0]);
	make_arena(&recv, opt.memory, recv_words, stack[1]);
	open_windows(&opt, &send, &recv);
	errors = run_cells(&opt, &blocks, &send, &recv);
	close_window(&send_window);
	close_window(&recv_window);
	arena_deinit(&send);
	arena_deinit(&recv);
	free(blocks.shares);
	if (errors && rank == 0)
		fprintf(stderr, "collbench: %zu words were wrong\n", errors);
	MPI_Finalize();
	return errors ? 1 : 0;
}
