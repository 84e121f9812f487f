// SPDX-License-Identifier: BSD-3-Clause
/*
 * messages SEED ROUNDS MOST: in each round some messages fly between random ranks: of 0 to MOST
 * bytes, in memory of every kind, with gaps at either end, on two communicators, sent and received
 * in every way that there is, in any order or in the order of one tag, waited for by name, by
 * wildcard or after a probe; or put and got. All ranks draw the same messages. What was sent is
 * overwritten or freed as soon as that is allowed; what was received is looked at byte by byte, and
 * what lies around it.
 *
 * With "two-sided" after that nothing is put or got, for without CMA Open MPI 4 tries that again
 * and again for ever. With "threads" as many threads of each rank exchange messages as
 * MPI_THREAD_MULTIPLE allows; with "killed" the last rank dies at some moment; with "fork",
 * children come and go meanwhile.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../random.h"

#define MESSAGES 12
#define GUARD	 64 /* words around what is received */
#define POOL	 ((size_t)1 << 18)
#define LARGE	 ((size_t)1 << 14) /* words of which onecopy's heap has the block */
#define THREADS	 50

enum memory { HEAP, STATIC, STACK, MAPPED, MEMORIES };
enum round { POSTED, LATE, PROBED, ONE_SIDED, ROUNDS };
enum way { SEND, SSEND, ISEND, PERSISTENT, WAYS };

struct message {
	int from, to, tag, comm;
	size_t words;
	size_t block[2]; /* words between gaps as long, at the sender and the receiver; 0: no gaps
			  */
	enum memory memory[2];
	enum way way;
	bool wild;
	/* Of the end that this rank is. */
	unsigned int *base, *data;
	size_t bytes;
	MPI_Request request;
};

static int rank, size;
static MPI_Comm comms[2];
static uint64_t common, own; /* random numbers: all ranks' and this one's */
static unsigned int static_pool[POOL];
static unsigned int *pools[MEMORIES]; /* those that are one block for all */
static size_t pool_used[MEMORIES];
static bool heap_alone;

static void fail(const char *what, const struct message *m)
{
	fprintf(stderr,
		"%s: %d to %d, tag %d, %zu words, memory %d and %d, gaps %zu and %zu, way %d\n",
		what, m->from, m->to, m->tag, m->words, m->memory[0], m->memory[1], m->block[0],
		m->block[1], m->way);
	MPI_Abort(MPI_COMM_WORLD, 2);
	exit(2);
}

static unsigned int word_at(const struct message *m, size_t i)
{
	unsigned int x = (unsigned int)(m->tag * 977 + m->from * 31 + m->to) * 2654435761u;

	x += (unsigned int)i * 40503u + (unsigned int)m->words;
	return x ^ x >> 15;
}

/* Where word @i is at an end with such blocks. */
static size_t place_of(size_t block, size_t i)
{
	return block ? i / block * 2 * block + i % block : i;
}

static size_t span_of(const struct message *m, int end)
{
	return m->words ? place_of(m->block[end], m->words - 1) + 1 : 0;
}

static void take(struct message *m, int end)
{
	size_t words = span_of(m, end) + 2 * GUARD + 1024;
	enum memory kind = m->memory[end];

	if (heap_alone && words < LARGE)
		words = LARGE;

	if (pools[kind] && words > POOL - pool_used[kind])
		kind = m->memory[end] = HEAP;
	m->bytes = words * sizeof(*m->base);
	if (pools[kind]) {
		m->base = pools[kind] + pool_used[kind];
		pool_used[kind] += words;
	} else if (kind == MAPPED) {
		m->base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
	} else {
		m->base = malloc(m->bytes);
	}
	if (!m->base || m->base == MAP_FAILED)
		fail("no memory", m);
	m->data = m->base + GUARD + random_next(&own) % 1024;
}

static void give_back(struct message *m, int end)
{
	memset(m->base, 0xa5, m->bytes < 1 << 16 ? m->bytes : 1 << 16);
	memset(m->data, 0x5a, span_of(m, end) * sizeof(*m->data));
	if (m->memory[end] == MAPPED)
		munmap(m->base, m->bytes);
	else if (m->memory[end] == HEAP)
		free(m->base);
}

/* What @m->words words are to the MPI at an end. */
static int type_of(const struct message *m, int end, MPI_Datatype *type)
{
	size_t block = m->block[end];

	if (!block) {
		*type = MPI_UNSIGNED;
		return (int)m->words;
	}
	MPI_Type_vector((int)(m->words / block), (int)block, (int)(2 * block), MPI_UNSIGNED, type);
	MPI_Type_commit(type);
	return 1;
}

static void drop_type(MPI_Datatype *type)
{
	if (*type != MPI_UNSIGNED)
		MPI_Type_free(type);
}

static size_t some_words(size_t most)
{
	size_t limit = (size_t)4 << random_next(&common) % 25;

	if (limit > most)
		limit = most;
	return (size_t)(random_next(&common) % (limit / 4 + 1));
}

static void draw_message(struct message *m, int number, bool ordered, size_t most)
{
	*m = (struct message){.from = (int)(random_next(&common) % (uint64_t)size),
			      .words = some_words(most)};
	m->to = (m->from + 1 + (int)(random_next(&common) % (uint64_t)(size - 1))) % size;
	m->tag = ordered ? 7 : number;
	m->comm = ordered ? 0 : (int)(random_next(&common) % 2);
	m->wild = !ordered && random_next(&common) % 2;
	m->way = (enum way)(random_next(&common) % WAYS);
	for (int end = 0; end < 2; end++) {
		size_t block = 1 + (size_t)(random_next(&common) % 3000);

		m->memory[end] = heap_alone || random_next(&common) % 3
					 ? HEAP
					 : (enum memory)(random_next(&common) % MEMORIES);
		if (random_next(&common) % 4 || m->words < block)
			continue;
		m->block[end] = block;
	}
	/* Whole blocks at both ends. */
	for (int end = 0; end < 2; end++)
		if (m->block[end] && m->words % m->block[end])
			m->block[end] = 0;
}

static void fill(struct message *m)
{
	take(m, 0);
	for (size_t i = 0; i < m->words; i++)
		m->data[place_of(m->block[0], i)] = word_at(m, i);
}

static void begin_send(struct message *m, bool may_wait)
{
	MPI_Datatype type;
	int count;

	fill(m);
	count = type_of(m, 0, &type);
	m->request = MPI_REQUEST_NULL;
	if (m->way == PERSISTENT) {
		MPI_Send_init(m->data, count, type, m->to, m->tag, comms[m->comm], &m->request);
		MPI_Start(&m->request);
	} else if (m->way == ISEND || !may_wait) {
		MPI_Isend(m->data, count, type, m->to, m->tag, comms[m->comm], &m->request);
	} else {
		(m->way == SEND ? MPI_Send : MPI_Ssend)(m->data, count, type, m->to, m->tag,
							comms[m->comm]);
		give_back(m, 0);
	}
	drop_type(&type);
}

static void end_send(struct message *m)
{
	if (m->request == MPI_REQUEST_NULL)
		return;
	MPI_Wait(&m->request, MPI_STATUS_IGNORE);
	if (m->way == PERSISTENT && m->request != MPI_REQUEST_NULL)
		MPI_Request_free(&m->request);
	give_back(m, 0);
}

static void prepare(struct message *m)
{
	take(m, 1);
	for (size_t i = 0; i < m->bytes / 4; i++)
		m->base[i] = ~(unsigned int)i;
}

static void begin_receive(struct message *m)
{
	MPI_Datatype type;
	int count;

	prepare(m);
	count = type_of(m, 1, &type);
	MPI_Irecv(m->data, count, type, m->wild ? MPI_ANY_SOURCE : m->from, m->tag, comms[m->comm],
		  &m->request);
	drop_type(&type);
}

static void receive(struct message *m, MPI_Message *found)
{
	MPI_Datatype type;
	int count;

	prepare(m);
	count = type_of(m, 1, &type);
	if (found)
		MPI_Mrecv(m->data, count, type, found, MPI_STATUS_IGNORE);
	else
		MPI_Recv(m->data, count, type, m->wild ? MPI_ANY_SOURCE : m->from, m->tag,
			 comms[m->comm], MPI_STATUS_IGNORE);
	drop_type(&type);
}

static void check(struct message *m)
{
	size_t first = (size_t)(m->data - m->base), span = span_of(m, 1), next = 0;

	for (size_t i = 0; i < m->bytes / 4; i++) {
		unsigned int wanted = ~(unsigned int)i;

		if (i >= first && i < first + span && next < m->words &&
		    i - first == place_of(m->block[1], next))
			wanted = word_at(m, next++);
		if (m->base[i] != wanted)
			fail("wrong data", m);
	}
	give_back(m, 1);
}

static void shuffle(int *order, int count)
{
	for (int i = count; i > 1; i--) {
		int other = (int)(random_next(&own) % (uint64_t)i), one = order[i - 1];

		order[i - 1] = order[other];
		order[other] = one;
	}
}

static void receive_probed(struct message *messages, int count)
{
	for (int c = 0; c < 2; c++) {
		int left = 0;

		for (int i = 0; i < count; i++)
			left += messages[i].to == rank && messages[i].comm == c;
		for (; left; left--) {
			MPI_Message found;
			MPI_Status status;

			MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c], &found, &status);
			receive(&messages[status.MPI_TAG], &found);
			check(&messages[status.MPI_TAG]);
		}
	}
}

static void send_and_receive(struct message *messages, int count, enum round round, bool ordered)
{
	int order[MESSAGES];

	for (int i = 0; i < count; i++)
		order[i] = i;
	if (!ordered)
		shuffle(order, count);
	for (int i = 0; i < count && round == POSTED; i++)
		if (messages[order[i]].to == rank)
			begin_receive(&messages[order[i]]);
	if (!ordered)
		shuffle(order, count);
	for (int i = 0; i < count; i++)
		if (messages[order[i]].from == rank)
			begin_send(&messages[order[i]], round == POSTED);
	if (round == PROBED)
		receive_probed(messages, count);
	for (int i = 0; i < count && round != PROBED; i++) {
		struct message *m = &messages[order[i]];

		if (m->to != rank)
			continue;
		if (round == POSTED)
			MPI_Wait(&m->request, MPI_STATUS_IGNORE);
		else
			receive(m, NULL);
		check(m);
	}
	for (int i = 0; i < count; i++)
		if (messages[i].from == rank)
			end_send(&messages[i]);
}

/* Each message has a window of its own, at its receiver when it is put, at its sender when got. */
static void put_and_get(struct message *messages, int count)
{
	for (int i = 0; i < count; i++) {
		struct message *m = &messages[i];
		bool put = m->way == SEND || m->way == ISEND;
		int owner = put ? m->to : m->from;
		unsigned int *window = NULL;
		MPI_Win win;

		m->block[0] = m->block[1] = 0;
		if (rank == m->from)
			fill(m);
		if (rank == m->to)
			prepare(m);
		if (rank == owner)
			window = m->data;
		MPI_Win_create(window, window ? (MPI_Aint)(m->words * sizeof(*window)) : 0,
			       sizeof(*window), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		MPI_Win_fence(0, win);
		if (put && rank == m->from)
			MPI_Put(m->data, (int)m->words, MPI_UNSIGNED, m->to, 0, (int)m->words,
				MPI_UNSIGNED, win);
		if (!put && rank == m->to)
			MPI_Get(m->data, (int)m->words, MPI_UNSIGNED, m->from, 0, (int)m->words,
				MPI_UNSIGNED, win);
		MPI_Win_fence(0, win);
		MPI_Win_free(&win);
		if (rank == m->from)
			give_back(m, 0);
		if (rank == m->to)
			check(m);
	}
}

static void *exchange(void *arg)
{
	int tag = 1000 + (int)(intptr_t)arg, peer = rank ^ 1;
	unsigned int state = (unsigned int)tag;

	for (int i = 0; i < 30; i++) {
		int words = (int)(rand_r(&state) % 40000);
		unsigned int *out = malloc((size_t)words * 4 + 4),
			     *in = malloc((size_t)words * 4 + 4);

		for (int w = 0; w < words; w++)
			out[w] = (unsigned int)(w * 7 + tag + i + rank);
		MPI_Sendrecv(out, words, MPI_UNSIGNED, peer, tag, in, words, MPI_UNSIGNED, peer,
			     tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		free(out);
		for (int w = 0; w < words; w++)
			if (in[w] != (unsigned int)(w * 7 + tag + i + peer)) {
				fprintf(stderr, "thread %d, message %d, word %d\n", tag, i, w);
				MPI_Abort(MPI_COMM_WORLD, 2);
			}
		free(in);
	}
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (intptr_t i = 0; i < THREADS && size % 2 == 0; i++)
		if (pthread_create(&threads[i], NULL, exchange, (void *)i))
			MPI_Abort(MPI_COMM_WORLD, 2);
	for (int i = 0; i < THREADS && size % 2 == 0; i++)
		pthread_join(threads[i], NULL);
}

static volatile bool forking = true;

/* Children that live for a moment, and write to what they have of the heap. */
static void *fork_children(void *arg)
{
	unsigned int *block = malloc(1 << 20);

	while (forking) {
		pid_t child = fork();

		if (!child) {
			memset(block, 1, 1 << 20);
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
		usleep(2000);
	}
	free(block);
	return arg;
}

static void *die(void *arg)
{
	usleep((useconds_t)(random_next(arg) % 400000));
	kill(getpid(), SIGKILL);
	return arg;
}

static bool is_asked(char **words, const char *word)
{
	while (*words && strcmp(*words, word))
		words++;
	return *words;
}

int main(int argc, char **argv)
{
	unsigned int stack_pool[POOL];
	pthread_t forker, killer;
	bool threads, forks;
	uint64_t moment;
	int provided;
	uint64_t kinds;
	size_t most;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 4 || size < 2)
		MPI_Abort(MPI_COMM_WORLD, 64);
	threads = is_asked(argv + 4, "threads");
	forks = is_asked(argv + 4, "fork");
	heap_alone = is_asked(argv + 4, "heap");
	kinds = is_asked(argv + 4, "two-sided") ? ONE_SIDED : ROUNDS;
	common = strtoull(argv[1], NULL, 0) | 1;
	own = (common << 8) + (uint64_t)rank + 1;
	most = strtoull(argv[3], NULL, 0);
	pools[STATIC] = static_pool;
	pools[STACK] = stack_pool;
	comms[0] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	if (forks)
		pthread_create(&forker, NULL, fork_children, NULL);
	moment = own;
	if (is_asked(argv + 4, "killed") && rank == size - 1)
		pthread_create(&killer, NULL, die, &moment);
	for (long round = atol(argv[2]); round; round--) {
		static struct message messages[MESSAGES];
		bool sure = round <= 3 && kinds > ONE_SIDED;
		enum round kind = sure ? ONE_SIDED : (enum round)(random_next(&common) % kinds);
		bool ordered = kind != PROBED && random_next(&common) % 4 == 0;
		int count = 1 + (int)(random_next(&common) % MESSAGES);

		memset(pool_used, 0, sizeof(pool_used));
		for (int i = 0; i < count; i++)
			draw_message(&messages[i], i, ordered, most);
		/* Some MPIs ask the kernel only for what is put and got: at least that. */
		if (sure)
			messages[0] = (struct message){.to = 1, .words = most / 4};
		if (kind == ONE_SIDED)
			put_and_get(messages, count);
		else
			send_and_receive(messages, count, kind, ordered);
		MPI_Barrier(comms[1]);
	}
	if (threads && provided == MPI_THREAD_MULTIPLE)
		run_threads();
	else if (threads && !rank)
		puts("no MPI_THREAD_MULTIPLE");
	forking = false;
	if (forks)
		pthread_join(forker, NULL);
	MPI_Comm_free(&comms[1]);
	MPI_Finalize();
	if (!rank)
		puts("all messages");
	return 0;
}
