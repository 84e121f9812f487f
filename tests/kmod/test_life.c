// SPDX-License-Identifier: BSD-3-Clause
/*
 * Owners that die while others use their regions; a module that is in use and
 * shall be removed.
 */
#include "dev.h"
#include "knem.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#define BYTES (1 << 20)

/* What owner and peers share: where the region of the moment is. */
struct board {
	volatile uint64_t cookie;
	volatile knem_cookie_t knem;
	volatile uint32_t copies, maps, revoked, stop;
};

static struct board *board_create(void)
{
	void *p = mmap(NULL, sizeof(struct board), KN_RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	KM_TRUE(p != MAP_FAILED);
	return p;
}

static pid_t owner_start(struct board *b)
{
	pid_t pid = km_fork();

	if (pid == 0) {
		uint8_t *p = km_pages(BYTES);

		memset(p, 0x77, BYTES);
		b->cookie = dv_create(dv_open(), p, BYTES, DV_RW);
		b->knem = kn_create(kn_open(), p, BYTES, KN_RW, 0);
		pause();
	}
	return pid;
}

/* All bytes are the owner's, or the call fails as it must. */
static void peer_copies(struct board *b)
{
	uint8_t *q = km_pages(BYTES);
	int fd = dv_open(), knem = kn_open();

	while (!b->knem)
		km_pause();
	while (!b->stop) {
		ssize_t n = dv_read(fd, b->cookie, 0, q, BYTES);
		int status;

		if (n == -1)
			KM_EQ(errno, ENOENT);
		else
			KM_TRUE(n == BYTES && q[0] == 0x77 && !memcmp(q, q + 1, BYTES - 1));
		memset(q, 0x77, BYTES);
		status = kn_inline(knem, b->knem, 0, q, BYTES, true, 0);
		if (status == -1)
			KM_EQ(errno, EINVAL);
		else
			KM_EQ(status, KNEM_STATUS_SUCCESS);
		b->copies++;
	}
}

static void peer_maps(struct board *b)
{
	int fd = dv_open();

	while (!b->stop) {
		uint8_t *m = dv_map(fd, b->cookie, 0, BYTES, ONECOPY_MAP_READ | ONECOPY_MAP_WRITE);

		if (m == MAP_FAILED) {
			KM_EQ(errno, ENOENT);
			continue;
		}
		for (size_t i = 0; i < BYTES; i += 4096) {
			int sig = km_touch(m + i, true);

			KM_TRUE(sig == 0 || sig == SIGBUS);
			b->revoked += sig == SIGBUS;
		}
		KM_OK(munmap(m, BYTES));
		b->maps++;
	}
}

/* Owners are killed and come anew while two peers copy and map without pause. */
static void owner_killed(void)
{
	unsigned long rounds = km_scaled(150), i;
	double until = km_now() + (km_slow() ? 60 : 10);
	struct board *b = board_create();
	uint64_t seed = km_seed();
	pid_t peers[2];

	for (i = 0; i < 2; i++) {
		peers[i] = km_fork();
		if (peers[i] == 0) {
			(i ? peer_maps : peer_copies)(b);
			_exit(0);
		}
	}
	/* Few rounds may be over before both have had a turn. */
	for (i = 0; i < rounds || (!(b->copies && b->maps) && km_now() < until); i++) {
		uint64_t was = b->cookie;
		pid_t owner = owner_start(b);

		while (b->cookie == was)
			km_pause();
		usleep(km_below(&seed, 8000));
		km_kill(owner);
	}
	b->stop = 1;
	for (int k = 0; k < 2; k++)
		km_join(peers[k]);
	km_note("%lu owners killed, %u copies, %u mappings, %u revoked touches", i, b->copies,
		b->maps, b->revoked);
	KM_TRUE(b->copies > 0 && b->maps > 0);
}

/* The peer is killed in the middle of a copy and of queued ones: nothing stays. */
static void peer_killed(void)
{
	const size_t bytes = 32 << 20;
	uint8_t *p = km_pages(bytes);
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p, bytes, DV_RW), seed = km_seed();

	for (unsigned long i = 0; i < km_scaled(60); i++) {
		pid_t pid = km_fork();

		if (pid == 0) {
			uint8_t *q = km_pages(bytes);
			int own = dv_open();

			dv_async(own, 256, -1);
			for (uint32_t j = 0;; j++)
				if (dv_read_async(own, cookie, 0, q, bytes, j % 256, 0))
					dv_read(own, cookie, 0, q, bytes);
		}
		usleep(km_below(&seed, 20000));
		km_kill(pid);
	}
	/* Only ours is left. */
	for (int i = 0; i < 5000 && km_counter("live_copies") > 0; i++)
		km_pause();
	KM_TRUE(km_counter("live_copies") <= 0);
	KM_TRUE(km_counter("live_pages") <= (long long)(bytes / km_page()));
}

static int unload(void)
{
	return syscall(SYS_delete_module, "onecopy", O_NONBLOCK);
}

/* By an open file of either device, or by a mapping alone. */
static void unload_refused(void)
{
	uint8_t *p = km_pages(BYTES), *m;
	int fd = dv_open();
	uint64_t cookie = dv_create(fd, p, BYTES, DV_RW | ONECOPY_REGION_LINGER);

	if (geteuid())
		km_skip("needs root");
	KM_ERR(unload(), EWOULDBLOCK);
	m = dv_map(fd, cookie, 0, BYTES, ONECOPY_MAP_READ);
	KM_TRUE(m != MAP_FAILED);
	KM_OK(close(fd));
	KM_ERR(unload(), EWOULDBLOCK);
	KM_EQ(km_touch(m, false), 0);
	fd = kn_open();
	KM_OK(munmap(m, BYTES));
	KM_ERR(unload(), EWOULDBLOCK);
	m = (uint8_t *)kn_array(fd, 100);
	KM_OK(close(fd));
	KM_ERR(unload(), EWOULDBLOCK);
	fd = kn_open_as(O_RDONLY);
	KM_OK(munmap(m, km_page()));
	KM_ERR(unload(), EWOULDBLOCK);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "owner_killed", .run = owner_killed, .limit = 90},
		{.name = "peer_killed", .run = peer_killed, .limit = 60},
		{.name = "unload_refused", .run = unload_refused},
		{0},
	};

	return km_main(cases, argc, argv);
}
