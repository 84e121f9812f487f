// SPDX-License-Identifier: BSD-3-Clause
/* Random calls of /dev/knem. */
#include "fuzz.h"

#include <poll.h>

static const int copy_errnos[] = {EFAULT, EINVAL, EPERM, EACCES, EBUSY, ENOMEM, EINTR, 0};

static void create(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, ENOMEM, 0};
	struct knem_cmd_create_region c = {
		.flags = fuzz_flags(f, KNEM_FLAG_ANY_CREATE_MASK),
		.protection = fuzz_one_in(f, 3) ? fuzz_below(f, 8) : KN_RW,
	};

	c.iovec_array = fuzz_segments(f, &c.iovec_nr);
	fuzz_mutate(f, &c, sizeof(c));
	if (!fuzz_call(f, fuzz_fd(f, FUZZ_KNEM), KNEM_CMD_CREATE_REGION, &c, errnos))
		fuzz_keep(f, FUZZ_KNEM, c.cookie);
}

static void destroy(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, 0};
	knem_cookie_t cookie = fuzz_cookie(f, FUZZ_KNEM);

	fuzz_call(f, fuzz_fd(f, FUZZ_KNEM), KNEM_CMD_DESTROY_REGION, &cookie, errnos);
}

static void copy(struct fuzz *f)
{
	struct knem_cmd_copy_bounded c = {
		.src_cookie = fuzz_cookie(f, FUZZ_KNEM),
		.src_offset = fuzz_offset(f),
		.dst_cookie = fuzz_cookie(f, FUZZ_KNEM),
		.dst_offset = fuzz_offset(f),
		.length = fuzz_offset(f),
		.flags = fuzz_flags(f, KNEM_FLAG_ANY_COPY_MASK),
		.async_status_index = fuzz_below(f, 5000),
	};
	struct knem_cmd_copy whole = {
		.src_cookie = c.src_cookie,
		.src_offset = c.src_offset,
		.dst_cookie = c.dst_cookie,
		.dst_offset = c.dst_offset,
		.flags = c.flags,
		.async_status_index = c.async_status_index,
	};
	int fd = fuzz_fd(f, FUZZ_KNEM);

	fuzz_mutate(f, &c, sizeof(c));
	fuzz_mutate(f, &whole, sizeof(whole));
	if (fuzz_one_in(f, 2))
		fuzz_call(f, fd, KNEM_CMD_COPY_BOUNDED, &c, copy_errnos);
	else
		fuzz_call(f, fd, KNEM_CMD_COPY, &whole, copy_errnos);
}

static void inline_copy(struct fuzz *f)
{
	struct knem_cmd_inline_copy_bounded c = {
		.write = fuzz_below(f, 2),
		.remote_cookie = fuzz_cookie(f, FUZZ_KNEM),
		.remote_offset = fuzz_offset(f),
		.length = fuzz_offset(f),
		.flags = fuzz_one_in(f, 2) ? 0 : fuzz_flags(f, KNEM_FLAG_ANY_COPY_MASK),
		.async_status_index = fuzz_below(f, 5000),
	};
	struct knem_cmd_inline_copy whole = {
		.write = c.write,
		.remote_cookie = c.remote_cookie,
		.remote_offset = c.remote_offset,
		.flags = c.flags,
		.async_status_index = c.async_status_index,
	};
	int fd = fuzz_fd(f, FUZZ_KNEM);

	c.local_iovec_array = fuzz_segments(f, &c.local_iovec_nr);
	whole.local_iovec_array = c.local_iovec_array;
	whole.local_iovec_nr = c.local_iovec_nr;
	fuzz_mutate(f, &c, sizeof(c));
	fuzz_mutate(f, &whole, sizeof(whole));
	if (fuzz_one_in(f, 2))
		fuzz_call(f, fd, KNEM_CMD_INLINE_COPY_BOUNDED, &c, copy_errnos);
	else
		fuzz_call(f, fd, KNEM_CMD_INLINE_COPY, &whole, copy_errnos);
}

static void old(struct fuzz *f)
{
	struct knem_cmd_init_send_param send = {.flags = fuzz_flags(f, KNEM_FLAG_ANY_CREATE_MASK)};
	struct knem_cmd_sync_recv_param sync = {.flags = fuzz_flags(f, KNEM_FLAG_ANY_COPY_MASK)};
	struct knem_cmd_init_async_recv_param async = {
		.flags = fuzz_flags(f, KNEM_FLAG_ANY_COPY_MASK),
		.status_index = fuzz_below(f, 5000),
	};
	int fd = fuzz_fd(f, FUZZ_KNEM);

	send.send_iovec_array = fuzz_segments(f, &send.send_iovec_nr);
	fuzz_mutate(f, &send, sizeof(send));
	if (fuzz_call(f, fd, KNEM_CMD_INIT_SEND, &send, copy_errnos))
		return;
	sync.send_cookie = async.send_cookie = send.send_cookie;
	sync.recv_iovec_array = async.recv_iovec_array = fuzz_segments(f, &sync.recv_iovec_nr);
	async.recv_iovec_nr = sync.recv_iovec_nr;
	fuzz_mutate(f, &sync, sizeof(sync));
	fuzz_mutate(f, &async, sizeof(async));
	fd = fuzz_fd(f, FUZZ_KNEM);
	if (fuzz_one_in(f, 2))
		fuzz_call(f, fd, KNEM_CMD_SYNC_RECV, &sync, copy_errnos);
	else
		fuzz_call(f, fd, KNEM_CMD_INIT_ASYNC_RECV, &async, copy_errnos);
}

static void array(struct fuzz *f)
{
	size_t bytes = 1 + fuzz_below(f, 9000);

	if (fuzz_one_in(f, 20))
		bytes += 1ull << 32;
	fuzz_map(f, fuzz_fd(f, FUZZ_KNEM), bytes, fuzz_one_in(f, 10) ? km_page() : 0);
}

static void ask(struct fuzz *f)
{
	static const int errnos[] = {EFAULT, EINVAL, EBUSY, ENOMEM, 0};
	uint64_t mask[4] = {random_next(&f->seed), random_next(&f->seed)};
	struct knem_cmd_bind_offload bind = {
		.flags = 1u << fuzz_below(f, 4),
		.mask_len = fuzz_below(f, sizeof(mask)),
		.mask_ptr = (uintptr_t)mask,
	};
	struct knem_cmd_info info;
	uint32_t index[16];
	int fd = fuzz_fd(f, FUZZ_KNEM);

	fuzz_mutate(f, &bind, sizeof(bind));
	fuzz_call(f, fd, KNEM_CMD_GET_INFO, &info, errnos);
	fuzz_call(f, fd, KNEM_CMD_BIND_OFFLOAD, &bind, errnos);
	fuzz_call(f, fd, _IOWR(KNEM_CMD_MAGIC, fuzz_below(f, 256), uint64_t), mask, errnos);
	f->calls += 2;
	poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0);
	if (read(fd, index, fuzz_below(f, sizeof(index))) > 0)
		f->done++;
}

void fuzz_knem(struct fuzz *f)
{
	static void (*const ops[])(struct fuzz *) = {
		create,	     create, copy, copy,  inline_copy, inline_copy,
		inline_copy, old,    ask,  array, destroy,
	};

	ops[fuzz_below(f, sizeof(ops) / sizeof(*ops))](f);
}
