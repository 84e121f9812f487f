// SPDX-License-Identifier: BSD-3-Clause
/*
 * knem_io.h as data: every number and layout that compiled clients carry.
 * Built for 32 bits too where the compiler can: the layouts must agree.
 * The header comes first and alone: it must bring what it needs, and ioctl().
 */
#include "knem_io.h"

#ifdef _SYS_MMAN_H
#error "knem_io.h must not include <sys/mman.h>"
#endif

static int client_without_sys_ioctl(int fd, struct knem_cmd_info *info)
{
	return ioctl(fd, KNEM_CMD_GET_INFO, info);
}

#include "kmod.h"

#include <fcntl.h>

#define NUMBER(cmd, number)  _Static_assert((cmd) == (number), #cmd)
#define SIZE(of, bytes)	     _Static_assert(sizeof(of) == (bytes), #of)
#define FIELD(of, name, off) _Static_assert(offsetof(struct of, name) == (off), #of "." #name)
#define WIDTH(of, name, bytes)                                                                     \
	_Static_assert(sizeof(((struct of *)0)->name) == (bytes), #of "." #name)
#define U32(of, name, off)                                                                         \
	FIELD(of, name, off);                                                                      \
	WIDTH(of, name, 4)
#define U64(of, name, off)                                                                         \
	FIELD(of, name, off);                                                                      \
	WIDTH(of, name, 8)

#ifndef KNEM_IO_H
#error "header guard"
#endif

NUMBER(KNEM_ABI_VERSION, 0x0000000d);
NUMBER(KNEM_CMD_MAGIC, 'K');
NUMBER(KNEM_CMD_GET_INFO, 0x40104b10u);
NUMBER(KNEM_CMD_BIND_OFFLOAD, 0x80104b11u);
NUMBER(KNEM_CMD_INIT_SEND, 0xc0184b20u);
NUMBER(KNEM_CMD_CREATE_REGION, 0xc0204b21u);
NUMBER(KNEM_CMD_DESTROY_REGION, 0x80084b22u);
NUMBER(KNEM_CMD_INIT_ASYNC_RECV, 0x80204b30u);
NUMBER(KNEM_CMD_SYNC_RECV, 0x80204b31u);
NUMBER(KNEM_CMD_COPY, 0x80304b32u);
NUMBER(KNEM_CMD_INLINE_COPY, 0x80304b33u);
NUMBER(KNEM_CMD_COPY_BOUNDED, 0x80384b34u);
NUMBER(KNEM_CMD_INLINE_COPY_BOUNDED, 0x80384b35u);

SIZE(struct knem_cmd_info, 16);
U32(knem_cmd_info, abi, 0);
U32(knem_cmd_info, features, 4);
U32(knem_cmd_info, ignored_flags, 8);
U32(knem_cmd_info, forced_flags, 12);

SIZE(struct knem_cmd_bind_offload, 16);
U32(knem_cmd_bind_offload, flags, 0);
U32(knem_cmd_bind_offload, mask_len, 4);
U64(knem_cmd_bind_offload, mask_ptr, 8);

SIZE(struct knem_cmd_param_iovec, 16);
U64(knem_cmd_param_iovec, base, 0);
U64(knem_cmd_param_iovec, len, 8);

SIZE(struct knem_cmd_create_region, 32);
U64(knem_cmd_create_region, iovec_array, 0);
U32(knem_cmd_create_region, iovec_nr, 8);
U32(knem_cmd_create_region, flags, 12);
U32(knem_cmd_create_region, protection, 16);
U32(knem_cmd_create_region, pad1, 20);
U64(knem_cmd_create_region, cookie, 24);

SIZE(struct knem_cmd_copy, 48);
U64(knem_cmd_copy, src_cookie, 0);
U64(knem_cmd_copy, src_offset, 8);
U64(knem_cmd_copy, dst_cookie, 16);
U64(knem_cmd_copy, dst_offset, 24);
U32(knem_cmd_copy, flags, 32);
U32(knem_cmd_copy, current_status, 36);
U32(knem_cmd_copy, async_status_index, 40);
U32(knem_cmd_copy, pad, 44);

SIZE(struct knem_cmd_copy_bounded, 56);
U64(knem_cmd_copy_bounded, src_cookie, 0);
U64(knem_cmd_copy_bounded, src_offset, 8);
U64(knem_cmd_copy_bounded, dst_cookie, 16);
U64(knem_cmd_copy_bounded, dst_offset, 24);
U64(knem_cmd_copy_bounded, length, 32);
U32(knem_cmd_copy_bounded, flags, 40);
U32(knem_cmd_copy_bounded, current_status, 44);
U32(knem_cmd_copy_bounded, async_status_index, 48);
U32(knem_cmd_copy_bounded, pad, 52);

SIZE(struct knem_cmd_inline_copy, 48);
U64(knem_cmd_inline_copy, local_iovec_array, 0);
U32(knem_cmd_inline_copy, local_iovec_nr, 8);
U32(knem_cmd_inline_copy, write, 12);
U64(knem_cmd_inline_copy, remote_cookie, 16);
U64(knem_cmd_inline_copy, remote_offset, 24);
U32(knem_cmd_inline_copy, flags, 32);
U32(knem_cmd_inline_copy, current_status, 36);
U32(knem_cmd_inline_copy, async_status_index, 40);
U32(knem_cmd_inline_copy, pad, 44);

SIZE(struct knem_cmd_inline_copy_bounded, 56);
U64(knem_cmd_inline_copy_bounded, local_iovec_array, 0);
U32(knem_cmd_inline_copy_bounded, local_iovec_nr, 8);
U32(knem_cmd_inline_copy_bounded, write, 12);
U64(knem_cmd_inline_copy_bounded, remote_cookie, 16);
U64(knem_cmd_inline_copy_bounded, remote_offset, 24);
U64(knem_cmd_inline_copy_bounded, length, 32);
U32(knem_cmd_inline_copy_bounded, flags, 40);
U32(knem_cmd_inline_copy_bounded, current_status, 44);
U32(knem_cmd_inline_copy_bounded, async_status_index, 48);
U32(knem_cmd_inline_copy_bounded, pad, 52);

SIZE(struct knem_cmd_init_send_param, 24);
U64(knem_cmd_init_send_param, send_iovec_array, 0);
U32(knem_cmd_init_send_param, send_iovec_nr, 8);
U32(knem_cmd_init_send_param, flags, 12);
U64(knem_cmd_init_send_param, send_cookie, 16);

SIZE(struct knem_cmd_init_async_recv_param, 32);
U64(knem_cmd_init_async_recv_param, recv_iovec_array, 0);
U32(knem_cmd_init_async_recv_param, recv_iovec_nr, 8);
U32(knem_cmd_init_async_recv_param, status_index, 12);
U64(knem_cmd_init_async_recv_param, send_cookie, 16);
U32(knem_cmd_init_async_recv_param, flags, 24);
U32(knem_cmd_init_async_recv_param, pad, 28);

SIZE(struct knem_cmd_sync_recv_param, 32);
U64(knem_cmd_sync_recv_param, recv_iovec_array, 0);
U32(knem_cmd_sync_recv_param, recv_iovec_nr, 8);
U32(knem_cmd_sync_recv_param, status, 12);
U64(knem_cmd_sync_recv_param, send_cookie, 16);
U32(knem_cmd_sync_recv_param, flags, 24);
U32(knem_cmd_sync_recv_param, pad, 28);

NUMBER(KNEM_CMD_INDEX(KNEM_CMD_COPY), 0x32);
SIZE(knem_flags, 4);
SIZE(knem_bind_flags, 4);
SIZE(knem_cookie_t, 8);
SIZE(knem_status_t, 1);
NUMBER(KNEM_STATUS_PENDING, 0);
NUMBER(KNEM_STATUS_SUCCESS, 1);
NUMBER(KNEM_STATUS_FAILED, 2);
NUMBER(KNEM_FEATURE_DMA, 1 << 0);
NUMBER(KNEM_BIND_FLAG_CUSTOM, 1 << 0);
NUMBER(KNEM_BIND_FLAG_CURRENT, 1 << 1);
NUMBER(KNEM_BIND_FLAG_CURRENT_REVERSED, 1 << 2);
NUMBER(KNEM_FLAG_DMA, 1 << 0);
NUMBER(KNEM_FLAG_ASYNCDMACOMPLETE, 1 << 1);
NUMBER(KNEM_FLAG_DMATHREAD, 1 << 2);
NUMBER(KNEM_FLAG_MEMCPYTHREAD, 1 << 3);
NUMBER(KNEM_FLAG_PINLOCAL, 1 << 4);
NUMBER(KNEM_FLAG_SINGLEUSE, 1 << 5);
NUMBER(KNEM_FLAG_NOTIFY_FD, 1 << 6);
NUMBER(KNEM_FLAG_ANY_USER_ACCESS, 1 << 7);
NUMBER(KNEM_FLAG_ANY_THREAD_MASK, 0x0c);
NUMBER(KNEM_FLAG_ANY_ASYNC_MASK, 0x0e);
NUMBER(KNEM_FLAG_ANY_DMA_MASK, 0x07);
NUMBER(KNEM_FLAG_ANY_CREATE_MASK, 0xa0);
NUMBER(KNEM_FLAG_ANY_COPY_MASK, 0x5f);
NUMBER(KNEM_STATUS_ARRAY_FILE_OFFSET, 0);

static void names(void)
{
	KM_TRUE(!strcmp(KNEM_DEVICE_NAME, "knem"));
	KM_TRUE(!strcmp(KNEM_DEVICE_FILENAME, "/dev/knem"));
}

/* Also as a 32-bit program: one handler for both. */
static void info(void)
{
	struct knem_cmd_info info = {.abi = 1};
	int fd = open(KNEM_DEVICE_FILENAME, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		km_skip("no %s", KNEM_DEVICE_FILENAME);
	KM_OK(fd);
	KM_OK(client_without_sys_ioctl(fd, &info));
	KM_EQ(info.abi, 0xd);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "names", .run = names},
		{.name = "info", .run = info},
		{0},
	};

	return km_main(cases, argc, argv);
}
