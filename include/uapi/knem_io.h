/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
#ifndef KNEM_IO_H
#define KNEM_IO_H

/*
 * The interface of /dev/knem as KNEM 1.1 defined it (B. Goglin, S. Moreaud: "KNEM: a generic and
 * scalable kernel-assisted intra-node MPI communication framework", JPDC 2013), written anew.
 * Programs compiled against KNEM's own header run on this device unchanged, and programs compiled
 * against this header run on KNEM.
 *
 * A process opens the device read-write; the open file is its context. It declares memory as a
 * region and passes the cookie that names the region to other processes of the same user, by any
 * means. They copy between their own memory and the region (INLINE_COPY), or between two regions
 * (COPY). A region holds its pages until it is destroyed or the last descriptor and mapping of the
 * open file are gone; copies under way keep the pages until they are done.
 *
 * Addresses are those of the calling process. All structures have the same layout for 32-bit and
 * 64-bit callers. The members "pad", and "current_status" on entry, are never read.
 *
 * ioctl() returns 0, or -1 with errno:
 *
 * - ENOSYS: no such command.
 * - EBADF: the device was opened read-only.
 * - EFAULT: the structure, an iovec array or memory that has to be pinned cannot be accessed.
 * - EINVAL: unknown cookie; asynchronous copy without a status array, or with an index outside it;
 *   DMA without a channel; NOTIFY_FD without a thread; lengths that overflow.
 * - EPERM: the region belongs to another user and is not KNEM_FLAG_ANY_USER_ACCESS.
 * - EACCES: the protection of the region does not allow this direction.
 * - EBUSY: no place for the event of KNEM_FLAG_NOTIFY_FD; BIND_OFFLOAD after mmap().
 * - ENOMEM: not enough memory, or the administrator's limit of pinned pages, regions or
 *   threads is reached.
 * - EINTR: a fatal signal came before the copy was accepted.
 *
 * No structure is written to unless the result is 0.
 */

#ifdef __KERNEL__
#include <linux/ioctl.h>
#include <linux/types.h>
#else
#include <stdint.h>
#include <sys/ioctl.h>
#endif

#define KNEM_DEVICE_NAME     "knem"
#define KNEM_DEVICE_FILENAME ("/dev/knem")

/* Compare for equality with knem_cmd_info.abi. */
#define KNEM_ABI_VERSION 0x0000000d

#define KNEM_CMD_MAGIC	  'K'
#define KNEM_CMD_INDEX(x) _IOC_NR(x)

typedef uint64_t knem_cookie_t; /* never 0 */
typedef uint8_t knem_status_t;	/* a slot of the status array holds one */
typedef uint32_t knem_flags;
typedef uint32_t knem_bind_flags;

enum knem_status_e {
	KNEM_STATUS_PENDING = 0,
	KNEM_STATUS_SUCCESS = 1,
	KNEM_STATUS_FAILED = 2,
};

/*
 * mmap(length, PROT_READ[|PROT_WRITE], MAP_SHARED, fd, KNEM_STATUS_ARRAY_FILE_OFFSET), once in the
 * life of an open file, gives it a status array: one knem_status_t a slot, as many slots as bytes,
 * length rounded up to pages; at most 2^32. A copy that is to report in a slot makes it
 * KNEM_STATUS_PENDING before the request returns, and writes the outcome once its data is in
 * place.
 */
#define KNEM_STATUS_ARRAY_FILE_OFFSET 0

/* knem_cmd_info.features: a DMA engine can be used. */
#define KNEM_FEATURE_DMA (1U << 0)

/*
 * Flags of regions and copies. The bits that apply to a command are those of the masks below;
 * others are dropped, and so are those of knem_cmd_info.ignored_flags. Those of
 * knem_cmd_info.forced_flags are added.
 */
#define KNEM_FLAG_DMA		   (1U << 0) /* copy by a DMA engine */
#define KNEM_FLAG_ASYNCDMACOMPLETE (1U << 1) /* with DMA: the call does not wait for it */
#define KNEM_FLAG_DMATHREAD	   (1U << 2) /* with DMA: a kernel thread waits for it */
#define KNEM_FLAG_MEMCPYTHREAD	   (1U << 3) /* a kernel thread copies */
#define KNEM_FLAG_PINLOCAL	   (1U << 4) /* pin local memory before copying */
#define KNEM_FLAG_SINGLEUSE	   (1U << 5) /* region: for one copy only */
#define KNEM_FLAG_NOTIFY_FD	   (1U << 6) /* with a thread: tell by read(), poll() */
#define KNEM_FLAG_ANY_USER_ACCESS  (1U << 7) /* region: open to every user */

#define KNEM_FLAG_ANY_THREAD_MASK (KNEM_FLAG_DMATHREAD | KNEM_FLAG_MEMCPYTHREAD)
#define KNEM_FLAG_ANY_ASYNC_MASK  (KNEM_FLAG_ASYNCDMACOMPLETE | KNEM_FLAG_ANY_THREAD_MASK)
#define KNEM_FLAG_ANY_DMA_MASK	  (KNEM_FLAG_DMA | KNEM_FLAG_ASYNCDMACOMPLETE | KNEM_FLAG_DMATHREAD)
#define KNEM_FLAG_ANY_CREATE_MASK (KNEM_FLAG_SINGLEUSE | KNEM_FLAG_ANY_USER_ACCESS)
#define KNEM_FLAG_ANY_COPY_MASK                                                                    \
	(KNEM_FLAG_ANY_DMA_MASK | KNEM_FLAG_MEMCPYTHREAD | KNEM_FLAG_PINLOCAL | KNEM_FLAG_NOTIFY_FD)

/* What the device is. Before anything else: check the ABI. */
struct knem_cmd_info {
	uint32_t abi;		/* out: KNEM_ABI_VERSION */
	uint32_t features;	/* out: KNEM_FEATURE_* */
	uint32_t ignored_flags; /* out: KNEM_FLAG_* dropped from every command */
	uint32_t forced_flags;	/* out: KNEM_FLAG_* added to every command */
};
#define KNEM_CMD_GET_INFO _IOW(KNEM_CMD_MAGIC, 0x10, struct knem_cmd_info)

/*
 * Where the context's kernel thread may run: exactly one flag; without this call, where the process
 * that maps the status array may run at that moment. Before mmap() of the status array, else EBUSY.
 */
#define KNEM_BIND_FLAG_CUSTOM		(1U << 0) /* on the processors of the mask */
#define KNEM_BIND_FLAG_CURRENT		(1U << 1) /* where the caller may run */
#define KNEM_BIND_FLAG_CURRENT_REVERSED (1U << 2) /* everywhere but there */

struct knem_cmd_bind_offload {
	uint32_t flags;	   /* one KNEM_BIND_FLAG_* */
	uint32_t mask_len; /* its bytes; a short mask is filled up with zeroes, a long one cut */
	uint64_t mask_ptr; /* address of a processor mask, unsigned long by unsigned long */
};
#define KNEM_CMD_BIND_OFFLOAD _IOR(KNEM_CMD_MAGIC, 0x11, struct knem_cmd_bind_offload)

struct knem_cmd_param_iovec {
	uint64_t base; /* address */
	uint64_t len;  /* bytes; 0 is skipped */
};

/*
 * Declare memory. The pages are pinned now: after fork() and a write, or after unmapping, the
 * region may no longer be what the address shows.
 */
struct knem_cmd_create_region {
	uint64_t iovec_array; /* address of struct knem_cmd_param_iovec[] */
	uint32_t iovec_nr;
	uint32_t flags;	     /* KNEM_FLAG_ANY_CREATE_MASK */
	uint32_t protection; /* what others may do: PROT_READ, PROT_WRITE of <sys/mman.h> */
	uint32_t pad1;
	uint64_t cookie; /* out: knem_cookie_t */
};
#define KNEM_CMD_CREATE_REGION _IOWR(KNEM_CMD_MAGIC, 0x21, struct knem_cmd_create_region)

/* End a region of this open file; the argument is a pointer to its cookie. */
#define KNEM_CMD_DESTROY_REGION _IOR(KNEM_CMD_MAGIC, 0x22, knem_cookie_t)

/*
 * Copies move as many bytes as there are in both places from the offsets on, and at most "length";
 * an offset behind the end is no error and moves none. Source and destination must not overlap.
 *
 * Without a bit of KNEM_FLAG_ANY_ASYNC_MASK the copy ends within the call, current_status says how,
 * and the status array is not touched. With MEMCPYTHREAD, with DMA and DMATHREAD, or with DMA and
 * ASYNCDMACOMPLETE, the copy may still be under way when the call returns: current_status then is
 * KNEM_STATUS_PENDING and the slot async_status_index changes when the copy is done; local memory
 * must not be unmapped or used until then. As many copies can be under way as there are slots
 * (65,536 at most): further calls wait. With other asynchronous bits the copy ends within the
 * call, and slot and current_status both say how. The thread of a context runs its copies in the
 * order of the calls.
 */
struct knem_cmd_copy {
	uint64_t src_cookie;
	uint64_t src_offset;
	uint64_t dst_cookie;
	uint64_t dst_offset;
	uint32_t flags;		 /* KNEM_FLAG_ANY_COPY_MASK */
	uint32_t current_status; /* out: enum knem_status_e */
	uint32_t async_status_index;
	uint32_t pad;
};
#define KNEM_CMD_COPY _IOR(KNEM_CMD_MAGIC, 0x32, struct knem_cmd_copy)

struct knem_cmd_copy_bounded {
	uint64_t src_cookie;
	uint64_t src_offset;
	uint64_t dst_cookie;
	uint64_t dst_offset;
	uint64_t length;
	uint32_t flags;		 /* KNEM_FLAG_ANY_COPY_MASK */
	uint32_t current_status; /* out: enum knem_status_e */
	uint32_t async_status_index;
	uint32_t pad;
};
#define KNEM_CMD_COPY_BOUNDED _IOR(KNEM_CMD_MAGIC, 0x34, struct knem_cmd_copy_bounded)

struct knem_cmd_inline_copy {
	uint64_t local_iovec_array; /* address of struct knem_cmd_param_iovec[] */
	uint32_t local_iovec_nr;
	uint32_t write; /* 0: from the region to local memory; else to the region */
	uint64_t remote_cookie;
	uint64_t remote_offset;
	uint32_t flags;		 /* KNEM_FLAG_ANY_COPY_MASK */
	uint32_t current_status; /* out: enum knem_status_e */
	uint32_t async_status_index;
	uint32_t pad;
};
#define KNEM_CMD_INLINE_COPY _IOR(KNEM_CMD_MAGIC, 0x33, struct knem_cmd_inline_copy)

struct knem_cmd_inline_copy_bounded {
	uint64_t local_iovec_array; /* address of struct knem_cmd_param_iovec[] */
	uint32_t local_iovec_nr;
	uint32_t write; /* 0: from the region to local memory; else to the region */
	uint64_t remote_cookie;
	uint64_t remote_offset;
	uint64_t length;
	uint32_t flags;		 /* KNEM_FLAG_ANY_COPY_MASK */
	uint32_t current_status; /* out: enum knem_status_e */
	uint32_t async_status_index;
	uint32_t pad;
};
#define KNEM_CMD_INLINE_COPY_BOUNDED _IOR(KNEM_CMD_MAGIC, 0x35, struct knem_cmd_inline_copy_bounded)

/*
 * The older interface of KNEM, for old programs. INIT_SEND is CREATE_REGION with SINGLEUSE and
 * PROT_READ; the two RECVs are INLINE_COPY from offset 0.
 */
struct knem_cmd_init_send_param {
	uint64_t send_iovec_array; /* address of struct knem_cmd_param_iovec[] */
	uint32_t send_iovec_nr;
	uint32_t flags;	      /* KNEM_FLAG_ANY_CREATE_MASK */
	uint64_t send_cookie; /* out: knem_cookie_t */
};
#define KNEM_CMD_INIT_SEND _IOWR(KNEM_CMD_MAGIC, 0x20, struct knem_cmd_init_send_param)

/*
 * The status is reported in slot status_index, also of a copy that ends within the call; needs the
 * status array.
 */
struct knem_cmd_init_async_recv_param {
	uint64_t recv_iovec_array; /* address of struct knem_cmd_param_iovec[] */
	uint32_t recv_iovec_nr;
	uint32_t status_index;
	uint64_t send_cookie;
	uint32_t flags; /* KNEM_FLAG_ANY_COPY_MASK */
	uint32_t pad;
};
#define KNEM_CMD_INIT_ASYNC_RECV _IOR(KNEM_CMD_MAGIC, 0x30, struct knem_cmd_init_async_recv_param)

/* Ends within the call whatever the flags; KNEM_FLAG_NOTIFY_FD gives EINVAL. */
struct knem_cmd_sync_recv_param {
	uint64_t recv_iovec_array; /* address of struct knem_cmd_param_iovec[] */
	uint32_t recv_iovec_nr;
	uint32_t status; /* out: enum knem_status_e */
	uint64_t send_cookie;
	uint32_t flags; /* KNEM_FLAG_ANY_COPY_MASK */
	uint32_t pad;
};
#define KNEM_CMD_SYNC_RECV _IOR(KNEM_CMD_MAGIC, 0x31, struct knem_cmd_sync_recv_param)

/*
 * read() of a context's descriptor gives, uint32_t by uint32_t, the indexes of copies with
 * KNEM_FLAG_NOTIFY_FD in the order in which they ended; it waits until the whole buffer is full,
 * unless O_NONBLOCK. poll() tells POLLIN when there is one, POLLERR without a status array. There
 * is room for as many events as slots.
 */

#endif
