// SPDX-License-Identifier: BSD-3-Clause
#include "segment/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/memfd.h"
#include "base/quiet.h"
#include "segment/area.h"

#define OC_SEGMENT_MAGIC 0x6c74636fu
#define OC_SEGMENT_ABI	 7u
#define OC_PAGE		 4096u

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static int map_segment(struct oc_node *node, uint64_t bytes)
{
	int err = oc_file_identify(&node->segment_file, node->segment_fd);
	void *at;

	if (err)
		return err;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, node->segment_fd,
		  0);
	if (at == MAP_FAILED)
		return -errno;
	/* A forked child is not a rank, and a core file not the place. */
	oc_quiet_madvise(at, bytes, MADV_DONTFORK);
	oc_quiet_madvise(at, bytes, MADV_DONTDUMP);
	node->segment = at;
	return 0;
}

int oc_segment_create(struct oc_node *node)
{
	uint64_t rank_off = round_up(sizeof(struct oc_segment), OC_CACHELINE);
	uint64_t area_off =
		round_up(rank_off + node->nranks * sizeof(struct oc_segment_rank), OC_PAGE);
	uint64_t bytes = area_off + (uint64_t)node->nranks * OC_AREA_BYTES;
	int fd = oc_memfd_create("onecopy-segment", bytes), err;

	if (fd < 0)
		return fd;
	node->segment_fd = fd;
	err = map_segment(node, bytes);
	if (err)
		goto close_fd;
	node->segment->magic = OC_SEGMENT_MAGIC;
	node->segment->abi = OC_SEGMENT_ABI;
	node->segment->nranks = node->nranks;
	node->segment->bytes = bytes;
	node->segment->rank_off = rank_off;
	node->segment->area_off = area_off;
	node->segment->area_bytes = OC_AREA_BYTES;
	if (getrandom(&node->segment->cookie_mask, sizeof(node->segment->cookie_mask), 0) !=
	    sizeof(node->segment->cookie_mask)) {
		err = -EIO;
		goto unmap;
	}
	node->ranks = (struct oc_segment_rank *)((char *)node->segment + rank_off);
	return 0;

unmap:
	munmap(node->segment, bytes);
	node->segment = NULL;
close_fd:
	close(fd);
	node->segment_fd = -1;
	return err;
}

int oc_segment_open(struct oc_node *node, int fd)
{
	struct oc_segment *segment;
	struct stat st;
	int err, seals = fcntl(fd, F_GET_SEALS);

	node->segment_fd = fd;
	err = -EPROTO;
	if (fstat(fd, &st) || seals < 0 || !(seals & F_SEAL_SHRINK) ||
	    (uint64_t)st.st_size < sizeof(*segment))
		goto close_fd;
	err = map_segment(node, (uint64_t)st.st_size);
	if (err)
		goto close_fd;
	segment = node->segment;
	err = -EPROTO;
	if (segment->magic != OC_SEGMENT_MAGIC || segment->abi != OC_SEGMENT_ABI ||
	    segment->nranks != node->nranks || segment->bytes != (uint64_t)st.st_size ||
	    segment->area_bytes != OC_AREA_BYTES || segment->rank_off > segment->bytes ||
	    segment->area_off > segment->bytes ||
	    segment->area_off <
		    segment->rank_off + segment->nranks * sizeof(struct oc_segment_rank) ||
	    segment->bytes - segment->area_off < (uint64_t)segment->nranks * OC_AREA_BYTES)
		goto unmap;
	node->ranks = (struct oc_segment_rank *)((char *)segment + segment->rank_off);
	return 0;

unmap:
	munmap(node->segment, (size_t)st.st_size);
	node->segment = NULL;
close_fd:
	close(fd);
	node->segment_fd = -1;
	return err;
}

void oc_segment_close(struct oc_node *node)
{
	if (!node->segment)
		return;
	oc_file_close(&node->segment_file, node->segment_fd);
	munmap(node->segment, node->segment->bytes);
	node->segment = NULL;
}
