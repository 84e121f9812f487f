// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/knem: what each known client does, call by call, in its own order; and the clients
 * themselves, where tests/kmod/clients has made them.
 */
#include "knem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES (1 << 20)

/* A fresh open and the version check all of them start with. */
static int start(void)
{
	struct knem_cmd_info info;
	int fd = kn_open_as(O_RDWR);

	KM_OK(ioctl(fd, KNEM_CMD_GET_INFO, &info));
	KM_EQ(info.abi, KNEM_ABI_VERSION);
	return fd;
}

/*
 * Open MPI smsc/knem, btl/vader: one lasting read-write region, plain copies
 * both ways by the peer, and a DESTROY that nobody looks at.
 */
static void openmpi_smsc(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = start();
	knem_cookie_t cookie = kn_create(fd, p, BYTES, KN_RW, 0);
	pid_t pid;

	km_fill(p, BYTES, 1);
	pid = km_fork();
	if (pid == 0) {
		int peer = start();

		kn_get(peer, cookie, 0, q, BYTES);
		KM_EQ(km_differ(q, BYTES, 1), BYTES);
		km_fill(q, BYTES, 2);
		kn_put(peer, cookie, 4097, q, BYTES - 4097);
		_exit(0);
	}
	km_join(pid);
	KM_EQ(km_differ(p + 4097, BYTES - 4097, 2), BYTES - 4097);
	KM_EQ(km_differ(p, 4097, 1), 4097);
	KM_OK(kn_destroy(fd, cookie));
}

/*
 * Open MPI 1.8 btl/sm: a single-use region a fragment; the receiver posts with
 * flag 0x2 alone and reaps its slots as an ordered ring.
 */
static void openmpi_sm_ring(void)
{
	enum { RING = 128, FRAGMENT = 32768, N = 500 };
	uint8_t *p = km_pages(FRAGMENT), *q = km_pages((size_t)RING * FRAGMENT);
	int sender = start(), fd = start(), first = 0, used = 0, reaped = 0;
	volatile knem_status_t *ring = kn_array(fd, RING);

	for (int i = 0; i < N || used; i++) {
		if (i < N) {
			int slot = (first + used++) % RING;
			knem_cookie_t cookie;

			km_fill(p, FRAGMENT, i);
			cookie = kn_create(sender, p, FRAGMENT, PROT_READ, KNEM_FLAG_SINGLEUSE);
			ring[slot] = KNEM_STATUS_PENDING;
			KM_OK(kn_inline_async(fd, cookie, 0, q + (size_t)slot * FRAGMENT, FRAGMENT,
					      false, KNEM_FLAG_ASYNCDMACOMPLETE, slot));
		}
		while (used && ring[first] != KNEM_STATUS_PENDING) {
			KM_EQ(ring[first], KNEM_STATUS_SUCCESS);
			KM_EQ(km_differ(q + (size_t)first * FRAGMENT, FRAGMENT, reaped++),
			      FRAGMENT);
			first = (first + 1) % RING;
			used--;
		}
	}
	KM_EQ(reaped, N);
}

/* UCX: a probe of one stack byte, then reads and writes of up to 16 pieces in 512 KiB segments. */
static void ucx(void)
{
	enum { SEGMENT = 512 * 1024, PIECES = 16 };
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES), byte = 0;
	struct knem_cmd_param_iovec iov[PIECES];
	struct knem_cmd_inline_copy copy = {.local_iovec_array = (uintptr_t)iov,
					    .local_iovec_nr = PIECES};
	int fd = start();
	knem_cookie_t cookie = kn_create(fd, &byte, 1, KN_RW, 0);

	KM_TRUE(cookie != 0);
	KM_OK(kn_destroy(fd, cookie));
	cookie = kn_create(fd, p, BYTES, KN_RW, 0);
	copy.remote_cookie = cookie;
	for (int write = 0; write < 2; write++) {
		km_fill(p, BYTES, 3);
		km_fill(q, BYTES, 4);
		copy.write = write;
		for (size_t off = 0; off < BYTES; off += SEGMENT) {
			for (int i = 0; i < PIECES; i++)
				iov[i] = kn_iov(q + off + (size_t)i * (SEGMENT / PIECES),
						SEGMENT / PIECES);
			copy.remote_offset = off;
			KM_OK(ioctl(fd, KNEM_CMD_INLINE_COPY, &copy));
			KM_EQ(copy.current_status, KNEM_STATUS_SUCCESS);
		}
		KM_EQ(km_differ(p, BYTES, 3 + write), BYTES);
		KM_EQ(km_differ(q, BYTES, 3 + write), BYTES);
	}
	KM_OK(kn_destroy(fd, cookie));
}

/*
 * MPICH nemesis: the array in any case; a single-use region of many segments;
 * it queues the slot after a synchronous copy too and sets it itself.
 */
static void mpich_lmt(void)
{
	enum { N = 200 };
	struct knem_cmd_param_iovec iov[N];
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int sender = start(), fd = start();
	volatile knem_status_t *slot = kn_array(fd, 4096);

	for (int round = 0; round < 2; round++) {
		uint32_t flags = round ? KNEM_FLAG_ASYNCDMACOMPLETE : 0;
		knem_cookie_t cookie;
		size_t n = 0;
		int now;

		if (round && kn_has_dma(fd))
			flags |= KNEM_FLAG_DMA;
		km_fill(p, BYTES, round);
		memset(q, 0, BYTES);
		for (int i = 0; i < N; i++) {
			iov[i] = kn_iov(p + n, 1 + (i * 37) % 5000);
			n += iov[i].len;
		}
		KM_OK(kn_create_try(sender, iov, N, PROT_READ, KNEM_FLAG_SINGLEUSE, &cookie));
		slot[round] = KNEM_STATUS_PENDING;
		now = kn_inline_async(fd, cookie, 0, q, n, false, flags, round);
		KM_OK(now);
		if (round) {
			KM_EQ(kn_wait(slot + round), KNEM_STATUS_SUCCESS);
		} else {
			KM_EQ(now, KNEM_STATUS_SUCCESS);
			KM_EQ(slot[round], KNEM_STATUS_PENDING);
		}
		KM_EQ(km_differ(q, n, round), n);
		KM_EQ(q[n], 0);
	}
}

/* Portals4: bounded copies between two regions, exact success or abort. */
static void portals4(void)
{
	uint8_t *p = km_pages(BYTES), *q = km_pages(BYTES);
	int fd = start();
	knem_cookie_t src = kn_create(fd, p, BYTES, KN_RW, 0);
	knem_cookie_t dst = kn_create(fd, q, BYTES, KN_RW, 0);

	KM_TRUE(src != 0 && dst != 0);
	km_fill(p, BYTES, 7);
	KM_EQ(kn_copy_bounded(fd, src, 1000, dst, 2000, 300000, 0, 0), KNEM_STATUS_SUCCESS);
	KM_TRUE(!memcmp(q + 2000, p + 1000, 300000));
	KM_TRUE(q[1999] == 0 && q[302000] == 0);
	KM_OK(kn_destroy(fd, src));
	KM_OK(kn_destroy(fd, dst));
}

/* POSH: the whole heap as one region, for every user. */
static void posh(void)
{
	const size_t heap = 16 << 20;
	uint8_t *p = km_pages(heap), *q = km_pages(BYTES);
	int fd = start();
	knem_cookie_t cookie = kn_create(fd, p, heap, KN_RW, KNEM_FLAG_ANY_USER_ACCESS);
	pid_t pid = km_fork();

	if (pid == 0) {
		int peer = start();

		km_drop(KM_OTHER_USER);
		km_fill(q, BYTES, 8);
		kn_put(peer, cookie, 5 << 20, q, BYTES);
		kn_get(peer, cookie, (5 << 20) + 5, q, 100);
		_exit(0);
	}
	km_join(pid);
	KM_EQ(km_differ(p + (5 << 20), BYTES, 8), BYTES);
}

/* NetPIPE: 0 stands for no region, and must stay unused. */
static void netpipe(void)
{
	uint8_t *p = km_pages(4096), local[8];
	int fd = start();

	for (int i = 0; i < 2000; i++) {
		knem_cookie_t cookie = kn_create(fd, p, 4096, PROT_READ, 0);

		KM_TRUE(cookie != 0);
		KM_OK(kn_destroy(fd, cookie));
	}
	KM_ERR(kn_inline(fd, 0, 0, local, 8, false, 0), EINVAL);
}

/* Where tests/kmod/clients puts them. */
static const char *clients(void)
{
	static char path[4096];
	const char *home = getenv("HOME");

	snprintf(path, sizeof(path), "%s/.cache/onecopy/clients", home ? home : "/root");
	return path;
}

static void need(const char *file)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/%s", clients(), file);
	if (access(path, F_OK))
		km_skip("no %s: tests/kmod/clients makes it", path);
}

/* Runs it in a shell, $clients set; its output must have @word, and it must have used the device.
 */
static void runs(const char *command, const char *word)
{
	long long regions = km_counter("regions_created"), copied = km_counter("bytes_copied");
	char out[8192];
	size_t n = 0, got;
	FILE *pipe;

	KM_OK(setenv("clients", clients(), 1));
	KM_OK(setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1));
	KM_OK(setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1));
	pipe = popen(command, "r");
	KM_TRUE(pipe != NULL);
	while (n < sizeof(out) - 1 && (got = fread(out + n, 1, sizeof(out) - 1 - n, pipe)))
		n += got;
	out[n] = 0;
	if (pclose(pipe) || !strstr(out, word))
		km_fail(__FILE__, __LINE__, "%s: %.400s", command, out);
	if (regions < 0)
		km_skip("no counters to read");
	regions = km_counter("regions_created") - regions;
	copied = km_counter("bytes_copied") - copied;
	km_note("%lld regions, %lld bytes copied", regions, copied);
	KM_TRUE(regions > 0);
	KM_TRUE(copied > 1 << 20);
}

/*
 * A softirq in a timer of User-Mode Linux may come back with interrupts off, though
 * its caller had enabled them; mpirun's packets meet that, and lockdep complains.
 * docs/guests.md, "The verdict".
 */
static void need_no_lockdep(void)
{
	if (!access("/proc/lockdep", F_OK))
		km_skip("mpirun trips User-Mode Linux itself under lockdep");
}

/* Debian's Open MPI with its transport built for KNEM. */
static void real_openmpi(void)
{
	need_no_lockdep();
	need("openmpi/mca_btl_vader.so");
	need("exchange");
	if (access("/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3", F_OK))
		km_skip("no Open MPI 4.1 of Debian");
	runs("mpirun -n 3 --oversubscribe --mca mca_base_component_path "
	     "$clients/openmpi:/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3 "
	     "--mca pml ob1 --mca btl self,vader --mca btl_vader_single_copy_mechanism knem "
	     "$clients/exchange 2>&1",
	     ", 0 wrong");
}

#define UCX                                                                                        \
	"export LD_LIBRARY_PATH=$clients/ucx/lib UCX_MODULE_DIR=$clients/ucx/lib/ucx "             \
	"UCX_RNDV_THRESH=1024 UCX_RNDV_SCHEME=get_zcopy; "

static void real_ucx(void)
{
	need("ucx/bin/ucx_perftest");
	runs(UCX "export UCX_TLS=posix,knem; p=$clients/ucx/bin/ucx_perftest; "
		 "$p -p 13400 >/dev/null 2>&1 & sleep 2; "
		 "$clients/ucx/bin/ucx_perftest -p 13400 127.0.0.1 -t tag_bw -s 1000000 -n 20 -w 2 "
		 "2>&1; wait",
	     "Final:");
}

/* Open MPI over UCX, which looks at nothing itself: the program does. */
static void real_openmpi_ucx(void)
{
	need_no_lockdep();
	need("ucx/lib/ucx/libuct_knem.so");
	need("exchange");
	runs(UCX "UCX_TLS=posix,self,knem mpirun -n 3 --oversubscribe -x LD_LIBRARY_PATH "
		 "-x UCX_MODULE_DIR -x UCX_RNDV_THRESH -x UCX_RNDV_SCHEME -x UCX_TLS "
		 "--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any "
		 "$clients/exchange 2>&1",
	     ", 0 wrong");
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "openmpi_smsc", .run = openmpi_smsc},
		{.name = "openmpi_sm_ring", .run = openmpi_sm_ring},
		{.name = "ucx", .run = ucx},
		{.name = "mpich_lmt", .run = mpich_lmt},
		{.name = "portals4", .run = portals4},
		{.name = "posh", .run = posh},
		{.name = "netpipe", .run = netpipe},
		{.name = "real_openmpi", .run = real_openmpi, .limit = 60},
		{.name = "real_ucx", .run = real_ucx, .limit = 60},
		{.name = "real_openmpi_ucx", .run = real_openmpi_ucx, .limit = 60},
		{0},
	};

	return km_main(cases, argc, argv);
}
