// SPDX-License-Identifier: BSD-3-Clause
/* Joining, leaving, liveness and the barrier. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../heap_memfd.h"
#include "../job.h"

static struct oc_node_attr attr_of(const struct job *job, const char *name, uint32_t timeout_ms)
{
	return (struct oc_node_attr){.size = sizeof(struct oc_node_attr),
				     .name = name,
				     .fd = job->fd,
				     .peer_fds = job->peer_fds,
				     .rank = job->rank,
				     .nranks = job->nranks,
				     .timeout_ms = timeout_ms};
}

static void nap_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void check_members(struct job *job, oc_node *node)
{
	CHECK_EQ(oc_node_rank(node), job->rank);
	CHECK_EQ(oc_node_size(node), job->nranks);
	for (uint32_t i = 0; i < job->nranks; i++)
		CHECK_EQ(oc_node_alive(node, i), 1);
	CHECK_EQ(oc_node_alive(node, job->nranks), -EINVAL);
}

static void test_sockets(struct job *job)
{
	oc_node *node = job_join(job);

	check_members(job, node);
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_node_leave(node);
}

static void test_name(struct job *job)
{
	oc_node *node;

	/* Whoever comes first waits for the others. */
	nap_ms((long)(job_random() % 50));
	node = job_join_by_name(job);
	check_members(job, node);
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_node_leave(node);
}

static void test_rejoin(struct job *job)
{
	int before = 0;

	for (int i = 0; i < 20; i++) {
		oc_node *node = job_join_by_name(job);

		CHECK_EQ(oc_node_barrier(node), 0);
		oc_node_leave(node);
		if (i == 0)
			before = count_fds();
	}
	CHECK_EQ(count_fds(), before);
}

static void test_bad_attr(struct job *job)
{
	struct oc_node_attr good = attr_of(job, job->name, 1000), attr;
	char long_name[80];
	oc_node *node = (void *)1;

	CHECK_EQ(oc_node_join(NULL, &node), -EINVAL);
	CHECK_EQ(oc_node_join(&good, NULL), -EINVAL);
	attr = good;
	attr.size = 8;
	CHECK_EQ(oc_node_join(&attr, &node), -EINVAL);
	attr = good;
	attr.flags = 1;
	CHECK_EQ(oc_node_join(&attr, &node), -EINVAL);
	attr = good;
	attr.nranks = 0;
	CHECK_EQ(oc_node_join(&attr, &node), -EINVAL);
	attr.nranks = 1025;
	CHECK_EQ(oc_node_join(&attr, &node), -EINVAL);
	attr = good;
	attr.rank = attr.nranks;
	CHECK_EQ(oc_node_join(&attr, &node), -EINVAL);
	attr = good;
	attr.name = "";
	CHECK_EQ(oc_node_join(&attr, &node), -EINVAL);
	memset(long_name, 'x', sizeof(long_name));
	long_name[65] = '\0';
	attr.name = long_name;
	CHECK_EQ(oc_node_join(&attr, &node), -EINVAL);
	CHECK(node == (void *)1);
	oc_node_leave(NULL);
}

static void test_late(struct job *job)
{
	struct oc_node_attr attr = attr_of(job, job->name, 300);
	oc_node *node;

	/* The last rank never comes. */
	if (job->rank == job->nranks - 1)
		return;
	CHECK_EQ(oc_node_join(&attr, &node), -ETIMEDOUT);
}

static void test_name_taken(struct job *job)
{
	struct oc_node_attr attr = attr_of(job, job->name, 2000);
	oc_node *node;
	int err;

	/* Two ranks 0 of one name: exactly one may listen, while all of them try. */
	attr.rank = 0;
	attr.nranks = 2;
	err = oc_node_join(&attr, &node);
	CHECK(err == -EADDRINUSE || err == -ETIMEDOUT);
	atomic_fetch_add(&job->shared->word[err == -ETIMEDOUT], 1);
	while (atomic_load(&job->shared->word[0]) + atomic_load(&job->shared->word[1]) <
	       job->nranks)
		nap_ms(1);
	CHECK_EQ(atomic_load(&job->shared->word[1]), 1);
}

static void test_other_uid(struct job *job)
{
	struct oc_node_attr attr = attr_of(job, job->name, 20000);
	oc_node *node;

	if (geteuid())
		job_skip("needs root to become another user");
	/* The name holds the uid, so a stranger has to lie about it; inherited
	 * sockets have no name. */
	attr.name = NULL;
	if (job->rank == 1)
		CHECK_EQ(seteuid(65534), 0);
	CHECK_EQ(oc_node_join(&attr, &node), job->rank == 1 ? -EPERM : -EPIPE);
}

static void test_dies_joining(struct job *job)
{
	struct oc_node_attr attr = attr_of(job, NULL, 20000);
	double start = now_s();
	oc_node *node;
	int err;

	if (job->rank == job->nranks - 1) {
		nap_ms(50);
		job_die();
	}
	err = oc_node_join(&attr, &node);
	CHECK(err == -EPIPE);
	CHECK(now_s() - start < 15); /* long before the time-out */
}

static void test_ranks_disagree(struct job *job)
{
	struct oc_node_attr attr = attr_of(job, NULL, 5000);
	oc_node *node;

	if (job->rank == 1)
		attr.nranks++;
	CHECK_EQ(oc_node_join(&attr, &node), -EINVAL);
}

static void test_file_size_limit(struct job *job)
{
	struct oc_node_attr attr = attr_of(job, NULL, 5000);
	struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
	oc_node *node;

	/* Everybody hears of rank 0's trouble, nobody of SIGXFSZ. */
	if (job->rank == 0)
		CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(oc_node_join(&attr, &node), -EFBIG);
}

static void test_killed(struct job *job)
{
	oc_node *node = job_join(job);
	uint32_t last = job->nranks - 1;
	double start;

	CHECK_EQ(oc_node_barrier(node), 0);
	if (job->rank == last)
		job_die();
	start = now_s();
	CHECK_EQ(oc_node_barrier(node), -EPIPE);
	CHECK_EQ(oc_node_barrier(node), -EPIPE);
	CHECK_EQ(oc_node_alive(node, last), 0);
	CHECK_EQ(oc_node_alive(node, job->rank), 1);
	CHECK(now_s() - start < 10);
	oc_node_leave(node);
}

static void test_left(struct job *job)
{
	oc_node *node = job_join(job);
	uint32_t last = job->nranks - 1;

	CHECK_EQ(oc_node_barrier(node), 0);
	if (job->rank == last) {
		oc_node_leave(node);
		while (atomic_load(&job->shared->word[0]) < last)
			nap_ms(1);
		return;
	}
	CHECK_EQ(oc_node_barrier(node), -EPIPE);
	CHECK_EQ(oc_node_alive(node, last), 0);
	atomic_fetch_add(&job->shared->word[0], 1);
	oc_node_leave(node);
}

static void test_barrier(struct job *job)
{
	oc_node *node = job_join(job);
	uint32_t n = job->nranks;

	for (uint64_t turn = 1; turn <= 300; turn++) {
		atomic_fetch_add(&job->shared->word[0], 1);
		CHECK_EQ(oc_node_barrier(node), 0);
		CHECK(atomic_load(&job->shared->word[0]) >= turn * n);
		CHECK(atomic_load(&job->shared->word[0]) < (turn + 1) * n);
		CHECK_EQ(oc_node_barrier(node), 0);
	}
	oc_node_leave(node);
}

/* A child of fork has no part in the node, and its end is not the rank's. */
static void test_fork(struct job *job)
{
	oc_node *node = job_join(job);
	int status;
	pid_t pid;

	CHECK_EQ(oc_node_barrier(node), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		oc_cookie cookie;
		struct iovec iov = {.iov_base = &cookie, .iov_len = sizeof(cookie)};

		CHECK_EQ(oc_node_alive(node, 0), -EINVAL);
		CHECK_EQ(oc_node_barrier(node), -EINVAL);
		CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), -EINVAL);
		CHECK_EQ(oc_get(node, 1, 0, &iov, 1), -EINVAL);
		oc_node_leave(node);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	for (uint32_t i = 0; i < job->nranks; i++)
		CHECK_EQ(oc_node_alive(node, i), 1);
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_node_leave(node);
}

/* Programs that close every descriptor they did not open drop the lock that
 * says "alive" with it, and must not lose a descriptor of their own later. */
static void test_descriptors_closed(struct job *job)
{
	oc_node *node = job_join(job);
	int fds[2];

	for (int fd = 3; fd < 64; fd++)
		close(fd);
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(oc_node_barrier(node), 0);
	for (uint32_t i = 0; i < job->nranks; i++)
		CHECK_EQ(oc_node_alive(node, i), 1);
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_node_leave(node);
	CHECK(fcntl(fds[0], F_GETFD) >= 0);
	CHECK(fcntl(fds[1], F_GETFD) >= 0);
}

/* A child that has locked byte @at of the file, until it is killed. */
static pid_t lock_in_child(int file, off_t at)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = at, .l_len = 1};
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		fcntl(file, F_SETLK, &lock);
		for (;;)
			pause();
	}
	while (!fcntl(file, F_GETLK, &lock) && lock.l_type == F_UNLCK) {
		lock.l_type = F_WRLCK;
		nap_ms(1);
	}
	return pid;
}

/* Who died is dead, though a file of the program's has the segment's number, and somebody a
 * lock on it. */
static void test_number_reused(struct job *job)
{
	oc_node *node = job_join(job);
	uint32_t last = job->nranks - 1;
	char name[] = "/tmp/onecopy-test.XXXXXX";
	int file = mkstemp(name), number = named_memfd("onecopy-segment");
	pid_t pid;

	CHECK(file >= 0 && !unlink(name) && number >= 0);
	CHECK_EQ(oc_node_barrier(node), 0);
	if (job->rank == last)
		job_die();
	pid = lock_in_child(file, last);
	CHECK_EQ(dup2(file, number), number);
	/* It is about to end; limits of the job do. */
	while (oc_node_alive(node, last))
		nap_ms(1);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	oc_node_leave(node);
}

/* A rank that closed the heap's descriptor before it joins has no arena for its
 * peers, and does not give them the file that has the number now. */
static void test_heap_closed(struct job *job)
{
	bool loser = job->rank == job->nranks - 1;
	uint64_t *block = oc_alloc(1 << 20), back = 0;
	struct iovec all = {.iov_base = block, .iov_len = 1 << 20};
	struct iovec word = {.iov_base = &back, .iov_len = sizeof(back)};
	struct oc_mech_report report;
	int heap_fd = heap_memfd(), file = -1;
	char name[] = "/tmp/onecopy-test.XXXXXX", byte = 0;
	oc_cookie cookie;
	oc_node *node;

	if (!block)
		job_skip(oc_heap_why());
	if (loser) {
		CHECK(heap_fd >= 0);
		file = mkstemp(name);
		CHECK(file >= 0 && !unlink(name));
		CHECK_EQ(ftruncate(file, (off_t)1 << 40), 0);
		CHECK_EQ(dup2(file, heap_fd), heap_fd);
		CHECK(strstr(oc_heap_why(), "closed the descriptor"));
	}
	node = job_join(job);
	for (uint32_t i = 0; i < job->nranks; i++) {
		CHECK_EQ(oc_mech_query(node, i, &report), 0);
		if (i == job->nranks - 1)
			CHECK(!(report.usable & OC_MECH_HEAP));
	}
	*block = 0x5eed + job->rank;
	CHECK_EQ(oc_region_create(node, &all, 1, OC_REGION_READ, &cookie), 0);
	atomic_store(&job->shared->word[job->rank], cookie);
	CHECK_EQ(oc_node_barrier(node), 0);
	for (uint32_t i = 0; i < job->nranks; i++) {
		CHECK_EQ(oc_get(node, atomic_load(&job->shared->word[i]), 0, &word, 1),
			 sizeof(back));
		CHECK_EQ(back, 0x5eed + i);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	CHECK_EQ(oc_region_destroy(node, cookie), 0);
	oc_node_leave(node);
	oc_free(block);
	if (loser) {
		struct stat st;

		CHECK_EQ(fstat(file, &st), 0);
		CHECK_EQ(st.st_blocks, 0);
		CHECK_EQ(read(heap_fd, &byte, 1), 1);
	}
}

/* With too little address space for the arenas the join still works, and so do copies. The
 * one who has no room for a heap may still see the others', through windows. */
static void test_address_space(struct job *job)
{
	struct rlimit limit = {.rlim_cur = 96 << 20, .rlim_max = RLIM_INFINITY};
	struct oc_mech_report report;
	static char block[64 << 10];
	struct iovec all = {.iov_base = block, .iov_len = sizeof(block)}, byte;
	oc_cookie cookie;
	oc_node *node;
	char back;

	if (job->rank == job->nranks - 1)
		setrlimit(RLIMIT_AS, &limit);
	node = job_join(job);
	block[0] = (char)job->rank;
	CHECK_EQ(oc_region_create(node, &all, 1, OC_REGION_READ, &cookie), 0);
	atomic_store(&job->shared->word[job->rank], cookie);
	CHECK_EQ(oc_node_barrier(node), 0);
	for (uint32_t i = 0; i < job->nranks; i++) {
		if (i == job->rank)
			continue;
		CHECK_EQ(oc_mech_query(node, i, &report), 0);
		if (i == job->nranks - 1)
			CHECK(!(report.usable & OC_MECH_HEAP));
		byte = (struct iovec){.iov_base = &back, .iov_len = 1};
		CHECK_EQ(oc_get(node, atomic_load(&job->shared->word[i]), 0, &byte, 1), 1);
		CHECK_EQ(back, (char)i);
	}
	CHECK_EQ(oc_node_barrier(node), 0);
	CHECK_EQ(oc_region_destroy(node, cookie), 0);
	oc_node_leave(node);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"sockets", 1, 5, test_sockets},
		{"name", 1, 5, test_name},
		{"rejoin", 2, 3, test_rejoin},
		{"bad-attr", 1, 1, test_bad_attr},
		{"late", 2, 4, test_late},
		{"name-taken", 2, 3, test_name_taken},
		{"other-uid", 2, 2, test_other_uid},
		{"dies-joining", 2, 4, test_dies_joining},
		{"ranks-disagree", 2, 3, test_ranks_disagree},
		{"file-size-limit", 1, 3, test_file_size_limit},
		{"killed", 2, 5, test_killed},
		{"left", 2, 4, test_left},
		{"barrier", 1, 5, test_barrier},
		{"fork", 2, 3, test_fork},
		{"descriptors-closed", 2, 3, test_descriptors_closed},
		{"number-reused", 2, 3, test_number_reused},
		{"heap-closed", 2, 3, test_heap_closed},
		{"address-space", 2, 3, test_address_space},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
