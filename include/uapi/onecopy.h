/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
#ifndef _UAPI_ONECOPY_H
#define _UAPI_ONECOPY_H

/*
 * The interface of /dev/onecopy.
 *
 * A process declares memory as a region and gets a 64-bit cookie for it. Whoever
 * learns the cookie, and is the same user (or the region was made for any user),
 * may copy from or into the region or map it, as its protection allows. Regions
 * belong to the open file they were created through: they are gone when they
 * are destroyed or when the last descriptor of that file is closed, whichever
 * is first. Their user is who opened it: the real uid at open().
 *
 * Conventions. Each request is ioctl(fd, ONECOPY_IOC_..., &argument). The first
 * member of each argument is its size in bytes. The kernel takes a smaller one
 * from older programs, down to the size of the first version, and takes the
 * members beyond as zero; a larger one from newer programs is taken if what the
 * kernel does not know is zero. Members marked "out" are written on success
 * only, unless said otherwise; on entry they are ignored. Reserved members and
 * unknown flags must be zero. Addresses and lengths are bytes. No request
 * depends on the width of the caller: 32-bit programs use the same structs.
 *
 * Errors of every request
 *  EBADF         the file was not opened for reading and writing
 *  EFAULT        the argument, or an array it points to, is not accessible
 *  EINVAL        size is below that of the first version; a reserved member or
 *                unknown flag is not zero; a combination that is described as
 *                invalid below
 *  E2BIG         size is larger than known and what is beyond is not zero; or
 *                more segments than onecopy_info.max_segments
 *  ENOTTY        no such request
 *  ENOMEM        no kernel memory
 *  EINTR         a fatal signal came in (nobody is left to see this); others do
 *                not disturb requests
 * Errors that say what is wrong with a region, in the order of the checks
 *  ENOENT        no region has this cookie: never, not any more, or, for
 *                REGION_DESTROY, not through this file
 *  EPERM         the region is another user's
 *  EACCES        the region's protection does not allow it
 *  ESTALE        the owner unmapped or replaced memory of a TRACK region
 * and what else a request may return stands with it.
 */

#include <linux/ioctl.h>
#include <linux/types.h>

#define ONECOPY_DEVICE "/dev/onecopy"
#define ONECOPY_ABI    1

#define ONECOPY_IOC_MAGIC	   0xC1
#define ONECOPY_IOC_INFO	   _IO(ONECOPY_IOC_MAGIC, 0x40)
#define ONECOPY_IOC_REGION_CREATE  _IO(ONECOPY_IOC_MAGIC, 0x41)
#define ONECOPY_IOC_REGION_DESTROY _IO(ONECOPY_IOC_MAGIC, 0x42)
#define ONECOPY_IOC_REGION_INFO	   _IO(ONECOPY_IOC_MAGIC, 0x43)
#define ONECOPY_IOC_COPY	   _IO(ONECOPY_IOC_MAGIC, 0x44)
#define ONECOPY_IOC_MAP		   _IO(ONECOPY_IOC_MAGIC, 0x45)
#define ONECOPY_IOC_ASYNC_SETUP	   _IO(ONECOPY_IOC_MAGIC, 0x46)
#define ONECOPY_IOC_CANCEL	   _IO(ONECOPY_IOC_MAGIC, 0x47)

/* A piece of the caller's memory. Length 0 is skipped. */
struct onecopy_segment {
	__aligned_u64 addr;
	__aligned_u64 length;
};

/* ---- ONECOPY_IOC_INFO: what this kernel and module can do ---- */

#define ONECOPY_FEATURE_MAP	 (1ULL << 0) /* ONECOPY_IOC_MAP; not with page_table_check=on */
#define ONECOPY_FEATURE_HUGE_MAP (1ULL << 1) /* huge folios are mapped by huge entries */
#define ONECOPY_FEATURE_TRACK	 (1ULL << 2) /* ONECOPY_REGION_TRACK */
#define ONECOPY_FEATURE_ASYNC	 (1ULL << 3) /* ONECOPY_COPY_ASYNC */
#define ONECOPY_FEATURE_DMA	 (1ULL << 4) /* ONECOPY_COPY_DMA finds a channel now */

struct onecopy_info {
	__u32 size;
	__u32 flags;		    /* 0 */
	__u32 abi;		    /* out: ONECOPY_ABI */
	__u32 page_size;	    /* out */
	__aligned_u64 features;	    /* out: ONECOPY_FEATURE_* */
	__u32 max_segments;	    /* out: of a region and of a copy's local memory */
	__u32 max_slots;	    /* out: completion words a file may have */
	__u32 generation_slots;	    /* out: TRACK regions a file may have */
	__u32 reserved;		    /* 0 */
	__aligned_u64 pinned_bytes; /* out: pinned by this user through this module */
	__aligned_u64 limit_bytes;  /* out: the module's limit of that for a user */
};

/* ---- ONECOPY_IOC_REGION_CREATE ---- */

#define ONECOPY_REGION_READ	  (1U << 0) /* others may read it */
#define ONECOPY_REGION_WRITE	  (1U << 1) /* others may write it */
#define ONECOPY_REGION_ANY_USER	  (1U << 2) /* users other than the creator too */
#define ONECOPY_REGION_SINGLE_USE (1U << 3) /* gone with the first copy that finds it */
/*
 * When memory of it is unmapped, moved or replaced by the owner, its generation
 * word is bumped and later requests for it are refused with ESTALE; when the owner
 * ends or executes another program, with ENOENT. REGION_DESTROY is due all the same.
 */
#define ONECOPY_REGION_TRACK (1U << 4)
/*
 * The pages that hold the segments are declared in whole: MAP may show bytes
 * of them that lie before and behind the segments. Without it MAP shows pages
 * of which every byte is the region's, and no others.
 */
#define ONECOPY_REGION_WHOLE_PAGES (1U << 5)
/*
 * Mappings of it outlive its owner and staleness: a peer that reads through
 * one is not killed by SIGBUS because the owner was. Only REGION_DESTROY revokes
 * them. The pages stay pinned and charged to the owner's user until then or
 * until the last munmap().
 */
#define ONECOPY_REGION_LINGER (1U << 6)

/*
 * Pins the pages of the segments. They need to be readable, with
 * ONECOPY_REGION_WRITE writable. The region is those pages, not the addresses:
 * if the owner unmaps or replaces them, the region still names the old ones
 * until it is destroyed (see ONECOPY_REGION_TRACK).
 *
 * The pages are charged to RLIMIT_MEMLOCK (CAP_IPC_LOCK: not), which all processes of the
 * user share, and to the module's limits, until the region is destroyed or stale and the
 * last copy in flight is done. Of a huge page any part counts as the whole, once for
 * each user. A copy that waits for its caller's memory is not
 * waited for, unless it has used up the region (SINGLE_USE).
 *
 * Errors
 *  EFAULT        memory that is not there or not so accessible, device memory,
 *                or otherwise not to be pinned
 *  EOVERFLOW     a segment wraps around, or they span 2^32 pages or more
 *  ENOMEM        beyond RLIMIT_MEMLOCK
 *  EDQUOT        beyond the module's limits of pages or regions
 *  ENOSPC        ONECOPY_REGION_TRACK: all generation words are in use
 *  EOPNOTSUPP    ONECOPY_REGION_TRACK without ONECOPY_FEATURE_TRACK
 *  EINVAL        TRACK with SINGLE_USE
 */
struct onecopy_region_create {
	__u32 size;
	__u32 flags;		  /* ONECOPY_REGION_* */
	__aligned_u64 segments;	  /* const struct onecopy_segment *, read during the call */
	__u32 nr_segments;	  /* 0 makes a region of length 0 */
	__u32 reserved;		  /* 0 */
	__aligned_u64 cookie;	  /* out: never 0 */
	__u32 generation_slot;	  /* out: index of its generation word; TRACK only */
	__u32 reserved2;	  /* 0 */
	__aligned_u64 generation; /* out: the word's value while the region is good; TRACK only */
};

/* ---- ONECOPY_IOC_REGION_DESTROY ---- */

/*
 * Through the file that created it only. When it returns, no new copy finds the
 * region and nobody's mapping shows it: touching one raises SIGBUS. Copies in
 * flight go on and keep the pages until they are done, but for those that wait, for
 * local memory or, from other files, for their turn (see ONECOPY_IOC_COPY).
 */
struct onecopy_region_destroy {
	__u32 size;
	__u32 flags; /* 0 */
	__aligned_u64 cookie;
};

/* ---- ONECOPY_IOC_REGION_INFO: for whoever may use the region ---- */

/* Does not use up a SINGLE_USE region. */
struct onecopy_region_info {
	__u32 size;
	__u32 flags; /* 0 */
	__aligned_u64 cookie;
	__aligned_u64 length;	/* out: bytes */
	__u32 region_flags;	/* out: ONECOPY_REGION_* */
	__u32 nr_segments;	/* out */
	__aligned_u64 nr_pages; /* out: pages pinned */
	__aligned_u64 nr_runs;	/* out: physically contiguous pieces they make */
};

/* ---- ONECOPY_IOC_COPY ---- */

#define ONECOPY_COPY_ASYNC (1U << 0) /* complete later, in word @slot */
#define ONECOPY_COPY_DMA   (1U << 1) /* by a DMA channel; with ASYNC only */
#define ONECOPY_COPY_EVENT                                                                         \
	(1U << 2) /* count it for poll(), read() and the eventfd, if any; with ASYNC only */

/*
 * Copies from the source to the destination. Each is a region, named by a
 * cookie, from an offset on; or, with cookie 0, the caller's memory in @local.
 * At most one of them may be the caller's memory, and its offset must be 0;
 * if none is, @local and @nr_local must be 0. The source needs
 * ONECOPY_REGION_READ, the destination ONECOPY_REGION_WRITE.
 *
 * Bytes moved: the smallest of @length, what the source has behind its offset
 * and what the destination has. An offset at or behind the end moves none; that
 * is no error. Order and width of accesses are not defined; source and
 * destination that overlap give undefined bytes (within the regions).
 *
 * @copied is written back with EFAULT too: then at least that many bytes from
 * the start have been moved.
 *
 * Local memory may have to be waited for: swapped out, or provided by a file system
 * or another process. A region that goes meanwhile is not touched again, and the copy
 * ends with ENOENT or ESTALE.
 *
 * ONECOPY_COPY_ASYNC: the local memory is pinned, regions of this file are held, and the
 * call returns; @copied is not written. Regions of other files have to be there still
 * when the copy starts: else its word says ENOENT or ESTALE. The local memory may be reused when
 * the word says so, and @local itself at once. Copies of one file start in order; they end in any
 * order.
 *
 * Errors: those of regions, source first, and
 *  EINVAL        both sides local; a local side with an offset; local memory
 *                with two cookies; DMA, EVENT or a slot without ASYNC
 *  EFAULT        local memory is not accessible
 *  EOVERFLOW     a local segment wraps around, or they add up beyond 2^63
 *  ENXIO         ASYNC before ONECOPY_IOC_ASYNC_SETUP
 *  ERANGE        no such slot
 *  EBUSY         the slot's last copy is still pending
 *  ENODEV        DMA: there is no channel
 *  ENOMEM        ASYNC: beyond RLIMIT_MEMLOCK
 *  EDQUOT        ASYNC: beyond the module's limits of pages
 */
struct onecopy_copy {
	__u32 size;
	__u32 flags;	      /* ONECOPY_COPY_* */
	__aligned_u64 source; /* cookie, or 0 for local memory */
	__aligned_u64 source_offset;
	__aligned_u64 destination; /* cookie, or 0 for local memory */
	__aligned_u64 destination_offset;
	__aligned_u64 local; /* const struct onecopy_segment *, or 0 */
	__u32 nr_local;
	__u32 slot;	      /* ASYNC: of the completion word */
	__aligned_u64 length; /* at most so many bytes; ~0: all there are */
	__aligned_u64 copied; /* out */
};

/* ---- ONECOPY_IOC_MAP ---- */

#define ONECOPY_MAP_READ  (1U << 0)
#define ONECOPY_MAP_WRITE (1U << 1) /* implies reading: needs both protections */

/*
 * Asks for part of a region to be mapped. The answer is used in one
 *	mmap(where, @map_length, prot, MAP_SHARED, fd, @map_offset)
 * on the same file; the offset is used up by it, whether or not it succeeds, and
 * a second mmap() there fails (EINVAL). Byte
 * @offset of the region is then found @skip bytes behind the address. Physical
 * pages are huge if @align is above the page size: an address that is
 * congruent to @align_offset modulo @align lets them be mapped as such.
 *
 * The mapping is not inherited by fork(). It may be unmapped in parts and moved
 * by mremap(), not grown. It stays until it is unmapped, or the region is
 * destroyed or, without LINGER, becomes stale or loses its owner: then touching
 * it raises SIGBUS. System calls that pin memory (direct I/O, another region)
 * refuse the mapping with EFAULT.
 *
 * Errors: those of regions, and
 *  EINVAL        @length 0, or READ not set
 *  ERANGE        not all of [@offset, @offset + @length) is in the region
 *  EOPNOTSUPP    pages that hold those bytes hold others that are not the
 *                region's, and it was not made with WHOLE_PAGES; or they span
 *                segments that do not join at page boundaries; or SINGLE_USE;
 *                or no ONECOPY_FEATURE_MAP
 *  EMFILE        too many answers of this file wait for their mmap()
 * mmap(): EINVAL no such offset, not MAP_SHARED, another length; EACCES more
 * than was asked for, or PROT_EXEC; ENOENT, ESTALE the region is gone by now.
 */
struct onecopy_map {
	__u32 size;
	__u32 flags; /* ONECOPY_MAP_* */
	__aligned_u64 cookie;
	__aligned_u64 offset; /* into the region; any */
	__aligned_u64 length;
	__aligned_u64 map_offset;   /* out */
	__aligned_u64 map_length;   /* out: whole pages */
	__aligned_u64 skip;	    /* out */
	__aligned_u64 align;	    /* out: power of two, page size or more */
	__aligned_u64 align_offset; /* out: below align */
};

/* ---- ONECOPY_IOC_ASYNC_SETUP ---- */

/*
 * What mmap() of ONECOPY_MMAP_COMPLETIONS shows, one a slot. The kernel writes
 * PENDING before ONECOPY_IOC_COPY returns; later it writes @error and @copied
 * and then, with release order, @state. A program waits for @state to leave
 * PENDING (load-acquire). It may write the words; the kernel believes none.
 */
#define ONECOPY_STATE_PENDING 0
#define ONECOPY_STATE_DONE    1
#define ONECOPY_STATE_FAILED  2 /* @error says why: ECANCELED, ENOENT, ESTALE, EINTR, EIO (DMA) */

struct onecopy_completion {
	__u32 state;
	__u32 error; /* errno, positive */
	__aligned_u64 copied;
};

#define ONECOPY_MMAP_COMPLETIONS 0x0ULL	       /* nr_slots struct onecopy_completion */
#define ONECOPY_MMAP_GENERATIONS 0x10000000ULL /* generation_slots __u64, read-only */

/*
 * Once a file, before the first ASYNC copy. Copies are made by threads, which run where
 * the caller of this may run now; without any, for the limits of the process or the
 * module, by who asks for the copy, before ONECOPY_IOC_COPY returns. A thread may be its
 * process's and end with it: copies still queued then, though somebody shares the
 * file, are FAILED with ECANCELED.
 *
 * Errors
 *  EINVAL        nr_slots 0
 *  ERANGE        nr_slots beyond onecopy_info.max_slots
 *  EBADF         eventfd is no eventfd
 *  EBUSY         done before
 * mmap() of the words: ENXIO before this; EINVAL beyond them or not MAP_SHARED;
 * of the generation words: EACCES for PROT_WRITE.
 *
 * With or without an eventfd: poll(): EPOLLIN when a copy with EVENT has completed since the last
 * read(); EPOLLERR before this request. read() gives a __u64, the number of such copies since the
 * last read(); EAGAIN, or waits, when there are none, until any signal (EINTR); EINVAL for less
 * than 8 bytes; ENXIO before this request.
 */
struct onecopy_async_setup {
	__u32 size;
	__u32 flags; /* 0 */
	__u32 nr_slots;
	__s32 eventfd; /* -1: none */
};

/* ---- ONECOPY_IOC_CANCEL ---- */

/*
 * A copy that has not started is taken back: its word becomes FAILED with
 * ECANCELED before the call returns. Errors: ENXIO no ASYNC_SETUP; ERANGE no
 * such slot; ENOENT nothing is pending there; EBUSY it has started and will
 * complete.
 */
struct onecopy_cancel {
	__u32 size;
	__u32 flags; /* 0 */
	__u32 slot;
	__u32 reserved; /* 0 */
};

#endif
