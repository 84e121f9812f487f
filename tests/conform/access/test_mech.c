// SPDX-License-Identifier: BSD-3-Clause
/* Mechanisms that are forbidden, refused or run into memory that is not there. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../share.h"

/* Indices of the public arrays. */
enum { CMA = __builtin_ctz(OC_MECH_CMA), STAGED = __builtin_ctz(OC_MECH_STAGED) };

/* Memory in a mapping of its own. Of one that is split, the kernel module takes all within
 * 2 MiB for changed. */
static uint8_t *separate(size_t size)
{
	uint8_t *p =
		mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_EQ(mprotect(p + size, 4096, PROT_NONE), 0);
	return p;
}

/* Memory that is not mapped, at either end: an error, never a fault. Plain
 * pointers (heap; map for the local end) are as good as what they are given. To
 * the kernel module a region of which anything was unmapped is no region. */
static void test_faults(struct job *job)
{
	uint32_t mech = share_mech();
	oc_node *node;
	uint8_t *hole, *mine;
	struct iovec iov[2], local;
	oc_cookie cookie, good;

	if (mech == OC_MECH_HEAP || mech == OC_MECH_MAP)
		job_skip("plain pointers have no errors");
	node = share_join(job);
	CHECK_EQ(oc_mech_allow(node, mech & ~OC_MECH_HEAP), 0);
	hole = separate(1 << 20);
	mine = separate(1 << 20);
	memset(mine, 1, 1 << 20);
	memset(hole, 2, 1 << 20);
	iov[0] = (struct iovec){mine, 100000};
	iov[1] = (struct iovec){hole, 1 << 20};
	CHECK_EQ(oc_region_create(node, iov, 2, OC_REGION_READ | OC_REGION_WRITE, &cookie), 0);
	CHECK_EQ(oc_region_create(node, iov, 1, OC_REGION_READ | OC_REGION_WRITE, &good), 0);
	munmap(hole + 400000 / 4096 * 4096, 4096);
	share_tell(job, (int)(2 * job->rank), cookie);
	share_tell(job, (int)(2 * job->rank + 1), good);
	cookie = share_hear(job, (int)(2 * ((job->rank + 1) % job->nranks)));
	good = share_hear(job, (int)(2 * ((job->rank + 1) % job->nranks) + 1));
	local = (struct iovec){malloc(1 << 20), 1 << 20};
	CHECK_EQ(oc_get(node, cookie, 0, &local, 1), -EFAULT);
	CHECK_EQ(oc_put(node, cookie, 0, &local, 1), -EFAULT);
	local.iov_len = 300000;
	CHECK_EQ(oc_get(node, cookie, 0, &local, 1),
		 mech & ~(OC_MECH_HEAP | OC_MECH_MAP | OC_MECH_KCOPY) ? 300000 : -EFAULT);
	/* Our own end. */
	CHECK_EQ(oc_mech_allow(node, mech & ~(OC_MECH_HEAP | OC_MECH_MAP)), 0);
	iov[0] = (struct iovec){hole + 400000 / 4096 * 4096, 4096};
	CHECK_EQ(oc_get(node, good, 0, iov, 1), -EFAULT);
	CHECK_EQ(oc_put(node, good, 0, iov, 1), -EFAULT);
	CHECK_EQ(oc_get(node, good, 0, &local, 1), 100000);
	free(local.iov_base);
	CHECK_EQ(oc_node_barrier(node), 0);
	munmap(mine, (1 << 20) + 4096);
	share_leave(job, node);
}

/* The heap alone cannot reach memory outside of it; what may be used is asked
 * each time. */
static void test_forbidden(struct job *job)
{
	oc_node *node = job_join(job);
	static uint8_t outside[64];
	uint8_t buf[64];
	struct iovec iov = {.iov_base = outside, .iov_len = sizeof(outside)};
	struct iovec local = {.iov_base = buf, .iov_len = sizeof(buf)};
	struct oc_mech_report report;
	oc_cookie cookie;

	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ, &cookie), 0);
	share_tell(job, (int)job->rank, cookie);
	cookie = share_hear(job, (int)((job->rank + 1) % job->nranks));
	CHECK_EQ(oc_mech_allow(node, OC_MECH_HEAP), 0);
	CHECK_EQ(oc_mech_query(node, 0, &report), 0);
	CHECK_EQ(report.forbidden, SHARE_ANY & ~OC_MECH_HEAP);
	CHECK_EQ(report.usable & report.forbidden, 0);
	for (int i = 1; i < OC_MECH_COUNT; i++)
		CHECK(report.why[i][0]);
	CHECK_EQ(oc_mech_query(node, job->nranks, &report), -EINVAL);
	CHECK_EQ(oc_get(node, cookie, 0, &local, 1), -EOPNOTSUPP);
	CHECK_EQ(oc_mech_allow(node, SHARE_ANY), 0);
	CHECK_EQ(oc_get(node, cookie, 0, &local, 1), 64);
	CHECK_EQ(oc_node_barrier(node), 0);
	oc_node_leave(node);
}

/* From now on this process may not read or write others' memory. */
static void refuse_cma(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		job_skip("no seccomp filters here");
}

/* A sandbox: found out by the probe, or later, by the first copy refused. */
static void refused(struct job *job, bool later)
{
	static uint8_t mine[300000];
	uint8_t *got = malloc(sizeof(mine));
	struct iovec iov = {.iov_base = mine, .iov_len = sizeof(mine)};
	struct oc_mech_report report;
	struct oc_mech_stats stats;
	oc_node *node;
	oc_cookie cookie;

	memset(mine, (int)job->rank + 1, sizeof(mine));
	if (!later)
		refuse_cma();
	node = job_join(job);
	if (later)
		refuse_cma();
	CHECK_EQ(oc_mech_allow(node, OC_MECH_CMA | OC_MECH_STAGED), 0);
	CHECK_EQ(oc_region_create(node, &iov, 1, OC_REGION_READ | OC_REGION_WRITE, &cookie), 0);
	share_tell(job, (int)job->rank, cookie);
	cookie = share_hear(job, (int)((job->rank + 1) % job->nranks));
	iov.iov_base = got;
	for (int i = 0; i < 3; i++) {
		memset(got, 0, sizeof(mine));
		CHECK_EQ(oc_get(node, cookie, 0, &iov, 1), sizeof(mine));
		for (size_t k = 0; k < sizeof(mine); k++)
			CHECK_EQ(got[k], (job->rank + 1) % job->nranks + 1);
	}
	CHECK_EQ(oc_mech_query(node, (job->rank + 1) % job->nranks, &report), 0);
	CHECK_EQ(report.usable, OC_MECH_STAGED);
	CHECK(report.why[CMA][0]);
	CHECK_EQ(oc_mech_stats(node, &stats), 0);
	CHECK_EQ(stats.calls[CMA], 0);
	CHECK_EQ(stats.calls[STAGED], 3);
	CHECK_EQ(stats.bytes[STAGED], 3 * sizeof(mine));
	/* Asked once, never again. */
	CHECK_EQ(stats.demotions, later);
	CHECK_EQ(oc_node_barrier(node), 0);
	free(got);
	oc_node_leave(node);
}

static void test_refused(struct job *job)
{
	refused(job, false);
}

static void test_refused_later(struct job *job)
{
	refused(job, true);
}

/* Rank 1 lives in a PID namespace of its own: whoever has its number here is
 * not it, and must not be touched. */
static void test_pid_namespace(struct job *job)
{
	struct oc_mech_report report;
	oc_node *node;
	int status;
	pid_t pid;

	if (job->rank == 1) {
		if (unshare(CLONE_NEWPID))
			job_skip("no PID namespaces here");
		pid = fork();
		CHECK(pid >= 0);
		if (pid) {
			share_hear(job, 0);
			CHECK_EQ(kill(pid, SIGKILL), 0);
			CHECK_EQ(waitpid(pid, &status, 0), pid);
			CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
			return;
		}
	}
	node = job_join(job);
	for (uint32_t i = 0; i < job->nranks; i++)
		CHECK_EQ(oc_node_alive(node, i), 1);
	CHECK_EQ(oc_mech_query(node, job->rank == 1 ? 0 : 1, &report), 0);
	CHECK(!(report.usable & OC_MECH_CMA));
	CHECK(strstr(report.why[CMA], "PID") != NULL);
	CHECK_EQ(oc_node_barrier(node), 0);
	if (job->rank == 1) {
		share_tell(job, 0, 1);
		pause();
	}
	while (oc_node_alive(node, 1))
		share_nap_us(100);
	oc_node_leave(node);
}

int main(int argc, char **argv)
{
	static const struct job_case cases[] = {
		{"faults", 2, 2, test_faults},
		{"forbidden", 2, 2, test_forbidden},
		{"refused", 2, 3, test_refused},
		{"refused-later", 2, 3, test_refused_later},
		{"pid-namespace", 2, 3, test_pid_namespace},
	};

	return job_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
