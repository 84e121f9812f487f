// SPDX-License-Identifier: BSD-3-Clause
/*
 * Random calls of both devices from several processes that share files and
 * cookies, one of them as another user. The kernel must stay whole (the harness
 * looks at its log and counters), every errno must be one the ABI names for the
 * request, and no byte outside declared memory may change.
 */
#include "fuzz.h"
#include "softdma.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define WORKERS 4
/* In all, with every check there is; less under emulation, more or less by KMOD_SCALE. */
#define CALLS 1000000

/* A leave to map, and mostly the mapping. */
static void ask_map(struct fuzz *f, int fd, struct onecopy_map *m)
{
	static const int errnos[] = {EFAULT, EINVAL, E2BIG,  ENOMEM,	 ENOENT, EPERM,
				     EACCES, ESTALE, ERANGE, EOPNOTSUPP, EMFILE, 0};

	fuzz_mutate(f, m, sizeof(*m));
	if (!fuzz_call(f, fd, ONECOPY_IOC_MAP, m, errnos) && !fuzz_one_in(f, 10))
		fuzz_map(f, fd, m->map_length, m->map_offset);
}

static void map(struct fuzz *f)
{
	struct onecopy_map m = {.size = sizeof(m),
				.flags = fuzz_one_in(f, 3) ? fuzz_flags(f, 3) : 3,
				.cookie = fuzz_cookie(f, FUZZ_ONECOPY),
				.offset = fuzz_one_in(f, 2) ? 0 : fuzz_offset(f),
				.length = fuzz_one_in(f, 2) ? 4096 : fuzz_offset(f)};
	struct onecopy_region_info r = {.size = sizeof(r), .cookie = m.cookie};
	int fd = fuzz_fd(f, FUZZ_ONECOPY);

	if (fuzz_one_in(f, 4) && !ioctl(fd, ONECOPY_IOC_REGION_INFO, &r)) {
		m.offset = 0;
		m.length = r.length;
	}
	ask_map(f, fd, &m);
}

static void create(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, E2BIG,	 ENOMEM, EOVERFLOW,
				     EDQUOT, ENOSPC, EOPNOTSUPP, 0};
	struct onecopy_region_create c = {.size = sizeof(c), .flags = fuzz_flags(f, 0x7f)};
	/* Huge pages in whole, to be mapped in whole: chance alone would hardly find both. */
	bool huge = f->huge && fuzz_one_in(f, 50);
	int fd = fuzz_fd(f, FUZZ_ONECOPY);

	if (fuzz_one_in(f, 2))
		c.flags |= DV_RW | ONECOPY_REGION_ANY_USER;
	if (!fuzz_one_in(f, 8))
		c.flags &= ~ONECOPY_REGION_TRACK;
	c.segments = fuzz_segments(f, &c.nr_segments);
	if (huge) {
		f->segs[0] = dv_seg(f->huge, FUZZ_HUGE);
		c.segments = (uintptr_t)f->segs;
		c.nr_segments = 1;
		c.flags = DV_RW | (c.flags & ~ONECOPY_REGION_SINGLE_USE);
	}
	fuzz_mutate(f, &c, sizeof(c));
	if (fuzz_call(f, fd, ONECOPY_IOC_REGION_CREATE, &c, errnos))
		return;
	fuzz_keep(f, FUZZ_ONECOPY, c.cookie);
	if (huge)
		ask_map(f, fd,
			&(struct onecopy_map){.size = sizeof(struct onecopy_map),
					      .flags = ONECOPY_MAP_READ | ONECOPY_MAP_WRITE,
					      .cookie = c.cookie,
					      .length = FUZZ_HUGE});
}

static void destroy(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, E2BIG, ENOENT, 0};
	struct onecopy_region_destroy d = {.size = sizeof(d),
					   .cookie = fuzz_cookie(f, FUZZ_ONECOPY)};

	fuzz_mutate(f, &d, sizeof(d));
	fuzz_call(f, fuzz_fd(f, FUZZ_ONECOPY), ONECOPY_IOC_REGION_DESTROY, &d, errnos);
}

static void copy(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, E2BIG,  ENOMEM,	ENOENT,
				     EPERM,  EACCES, ESTALE, EOVERFLOW, ENXIO,
				     ERANGE, EBUSY,  ENODEV, EDQUOT,	0};
	struct onecopy_copy c = {.size = sizeof(c), .length = fuzz_offset(f)};
	uint64_t kind = fuzz_below(f, 3);

	if (kind != 0) {
		c.source = fuzz_cookie(f, FUZZ_ONECOPY);
		c.source_offset = fuzz_offset(f);
	}
	if (kind != 1) {
		c.destination = fuzz_cookie(f, FUZZ_ONECOPY);
		c.destination_offset = fuzz_offset(f);
	}
	if (kind != 2)
		c.local = fuzz_segments(f, &c.nr_local);
	if (fuzz_one_in(f, 3)) {
		c.flags = ONECOPY_COPY_ASYNC | fuzz_flags(f, ONECOPY_COPY_DMA | ONECOPY_COPY_EVENT);
		c.slot = fuzz_below(f, 70);
	}
	fuzz_mutate(f, &c, sizeof(c));
	fuzz_call(f, fuzz_fd(f, FUZZ_ONECOPY), ONECOPY_IOC_COPY, &c, errnos);
}

static void setup(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, E2BIG, ENOMEM, ERANGE, EBADF, EBUSY, 0};
	struct onecopy_async_setup s = {.size = sizeof(s), .nr_slots = 64, .eventfd = -1};
	int fd = fuzz_fd(f, FUZZ_ONECOPY), event = -1;

	if (fuzz_one_in(f, 2))
		s.eventfd = event = eventfd(0, EFD_NONBLOCK);
	if (fuzz_one_in(f, 10))
		s.nr_slots = fuzz_offset(f);
	fuzz_mutate(f, &s, sizeof(s));
	if (!fuzz_call(f, fd, ONECOPY_IOC_ASYNC_SETUP, &s, errnos))
		fuzz_map(f, fd, km_page(), ONECOPY_MMAP_COMPLETIONS);
	if (event >= 0)
		close(event);
}

static void cancel(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, E2BIG, ENXIO, ERANGE, ENOENT, EBUSY, 0};
	struct onecopy_cancel c = {.size = sizeof(c), .slot = fuzz_below(f, 70)};

	fuzz_mutate(f, &c, sizeof(c));
	fuzz_call(f, fuzz_fd(f, FUZZ_ONECOPY), ONECOPY_IOC_CANCEL, &c, errnos);
}

static void ask(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, E2BIG, ENOENT, EPERM, EACCES, ESTALE, 0};
	/* A number that some request has may come with an argument it takes. */
	static const int any[] = {EFAULT, EINVAL, E2BIG,  ENOMEM,    ENOENT, EPERM,
				  EACCES, ESTALE, EDQUOT, EOVERFLOW, ENOSPC, EOPNOTSUPP,
				  ENXIO,  ERANGE, EBUSY,  ENODEV,    EMFILE, 0};
	struct onecopy_region_info r = {.size = sizeof(r), .cookie = fuzz_cookie(f, FUZZ_ONECOPY)};
	struct onecopy_info i = {.size = sizeof(i)};
	uint32_t number = fuzz_below(f, 256);
	bool known = number >= _IOC_NR(ONECOPY_IOC_INFO) && number <= _IOC_NR(ONECOPY_IOC_CANCEL);
	uint8_t text[64];
	int fd = fuzz_fd(f, FUZZ_ONECOPY);

	fuzz_mutate(f, &r, sizeof(r));
	fuzz_mutate(f, &i, sizeof(i));
	fuzz_call(f, fd, ONECOPY_IOC_REGION_INFO, &r, errnos);
	fuzz_call(f, fd, ONECOPY_IOC_INFO, &i, errnos);
	fuzz_call(f, fd, _IO(ONECOPY_IOC_MAGIC, number), &i, known ? any : errnos);
	f->calls += 2;
	poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0);
	if (read(fd, text, fuzz_below(f, sizeof(text))) > 0)
		f->done++;
}

/* Memory below regions and copies changes. */
static void change_memory(struct fuzz *f)
{
	const int how = fuzz_one_in(f, 2) ? MAP_PRIVATE : MAP_SHARED;
	size_t bytes;
	uint8_t *p = fuzz_pages(f, &bytes);

	switch (fuzz_below(f, 5)) {
	case 0:
		madvise(p, bytes, MADV_DONTNEED);
		break;
	case 1:
		mprotect(p, bytes, fuzz_one_in(f, 4) ? PROT_READ : KN_RW);
		break;
	case 2:
		KM_TRUE(mmap(p, bytes, KN_RW, how | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
		break;
	case 3:
		/* Huge pages again, all of them. */
		if (!f->huge)
			break;
		KM_TRUE(mmap(f->huge, FUZZ_HUGE, KN_RW, how | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
			f->huge);
		madvise(f->huge, FUZZ_HUGE, MADV_HUGEPAGE);
		break;
	default:
		km_touch(p, true);
	}
}

/* A child with all our files makes some calls of its own, and may end badly. */
static void child(struct fuzz *f)
{
	pid_t pid = km_fork();

	if (pid == 0) {
		f->seed ^= 0xc41d;
		for (int i = 0; i < 5; i++)
			fuzz_knem(f);
		if (fuzz_one_in(f, 2))
			kill(getpid(), SIGKILL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

void fuzz_onecopy(struct fuzz *f)
{
	static void (*const ops[])(struct fuzz *) = {create, copy,   copy,   copy,    map,  map,
						     ask,    create, cancel, destroy, setup};

	ops[fuzz_below(f, sizeof(ops) / sizeof(*ops))](f);
}

static void work(struct fuzz *f, unsigned long calls)
{
	while (f->calls < calls) {
		if (fuzz_one_in(f, 2))
			fuzz_onecopy(f);
		else
			fuzz_knem(f);
		if (fuzz_one_in(f, 10))
			fuzz_unmap(f);
		if (fuzz_one_in(f, 50))
			change_memory(f);
		if (fuzz_one_in(f, 200))
			fuzz_reopen(f, fuzz_below(f, FUZZ_DEVICES));
		if (fuzz_one_in(f, 10000))
			child(f);
	}
	fuzz_check(f);
	__atomic_add_fetch(&f->shared->calls, f->calls, __ATOMIC_RELAXED);
	__atomic_add_fetch(&f->shared->done, f->done, __ATOMIC_RELAXED);
}

/* What a kernel may lack, and the calls meet where it does not: so far. */
struct met {
	long long engines; /* bytes that they copied; -1: there are none */
	long long huge;	   /* entries of mappings; -1: there are none */
};

static struct met met(void)
{
	struct met met = {-1, -1};
	int fd = dv_open();

	if (!access("/sys/module/softdma", F_OK))
		met.engines = sd_count("copied");
	if (dv_info(fd).features & ONECOPY_FEATURE_HUGE_MAP)
		met.huge = km_counter("mapping_huge_entries");
	KM_OK(close(fd));
	return met;
}

/* For test_guests.py, which knows what to expect of which kernel. */
static void tell(const struct met *before)
{
	struct met now = met();

	if (now.engines >= 0)
		km_note("met engines: %lld bytes copied", now.engines - before->engines);
	else
		km_note("met no engines: %s", access("/sys/class/dma", F_OK)
						      ? "the kernel knows none"
						      : "no softdma.ko is loaded");
	if (now.huge >= 0)
		km_note("met huge pages: %lld entries", now.huge - before->huge);
	else
		km_note("met no huge pages: %s", access("/sys/kernel/mm/transparent_hugepage", F_OK)
							 ? "the kernel knows none"
							 : "the module maps none");
}

/* An engine that fails, is full and comes out of order, now and then. */
static void disturb_dma(void)
{
	if (access("/sys/module/softdma", F_OK))
		return;
	sd_set("reorder", "1");
	sd_set("fail_every", "50");
	sd_set("full_every", "7");
}

/* The other user opens them, too: files that nobody can close would keep regions, until the
 * limits leave nothing to do. */
static void let_all_open(bool all)
{
	chmod(ONECOPY_DEVICE, all ? 0666 : 0660);
	chmod(KNEM_DEVICE_FILENAME, all ? 0666 : 0660);
}

static void fuzz(void)
{
	unsigned long calls = km_uml() ? km_share(CALLS) : km_scaled(CALLS);
	struct fuzz_shared *shared =
		mmap(NULL, sizeof(*shared), KN_RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct met before = met();
	static struct fuzz f;
	pid_t pid[WORKERS];

	KM_TRUE(shared != MAP_FAILED);
	disturb_dma();
	let_all_open(true);
	fuzz_init(&f, 0, shared);
	for (int i = 0; i < WORKERS; i++) {
		pid[i] = km_fork();
		if (pid[i])
			continue;
		f.seed = km_seed() + i;
		if (i == WORKERS - 1 && geteuid() == 0)
			km_drop(KM_OTHER_USER);
		work(&f, calls / WORKERS + 1);
		_exit(0);
	}
	fuzz_close(&f);
	for (int i = 0; i < WORKERS; i++)
		km_join(pid[i]);
	let_all_open(false);
	km_note("%lu calls, %lu of them successful", shared->calls, shared->done);
	tell(&before);
	KM_TRUE(shared->calls >= calls && shared->done > shared->calls / 10);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "fuzz", .run = fuzz, .limit = 3600},
		{0},
	};

	return sd_main(cases, argc, argv);
}
