// SPDX-License-Identifier: BSD-3-Clause
#include "segment/ctl.h"

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

#define OC_CTL_MAGIC 0x6c74636fu
#define OC_CTL_ABI   4u
#define OC_PAGE	     4096u

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static int map_segment(struct oc_node *node, uint64_t bytes)
{
	int err = oc_file_identify(&node->ctl_file, node->ctl_fd);
	void *at;

	if (err)
		return err;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, node->ctl_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	/* A forked child is not a rank, and a core file not the place. */
	oc_quiet_madvise(at, bytes, MADV_DONTFORK);
	oc_quiet_madvise(at, bytes, MADV_DONTDUMP);
	node->ctl = at;
	return 0;
}

int oc_ctl_create(struct oc_node *node)
{
	uint64_t rank_off = round_up(sizeof(struct oc_ctl), OC_CACHELINE);
	uint64_t area_off = round_up(rank_off + node->nranks * sizeof(struct oc_ctl_rank), OC_PAGE);
	uint64_t bytes = area_off + (uint64_t)node->nranks * OC_AREA_BYTES;
	int fd = oc_memfd_create("onecopy-ctl", bytes), err;

	if (fd < 0)
		return fd;
	node->ctl_fd = fd;
	err = map_segment(node, bytes);
	if (err)
		goto close_fd;
	node->ctl->magic = OC_CTL_MAGIC;
	node->ctl->abi = OC_CTL_ABI;
	node->ctl->nranks = node->nranks;
	node->ctl->bytes = bytes;
	node->ctl->rank_off = rank_off;
	node->ctl->area_off = area_off;
	node->ctl->area_bytes = OC_AREA_BYTES;
	if (getrandom(&node->ctl->cookie_mask, sizeof(node->ctl->cookie_mask), 0) !=
	    sizeof(node->ctl->cookie_mask)) {
		err = -EIO;
		goto unmap;
	}
	node->ranks = (struct oc_ctl_rank *)((char *)node->ctl + rank_off);
	return 0;

unmap:
	munmap(node->ctl, bytes);
	node->ctl = NULL;
close_fd:
	close(fd);
	node->ctl_fd = -1;
	return err;
}

int oc_ctl_open(struct oc_node *node, int fd)
{
	struct oc_ctl *ctl;
	struct stat st;
	int err, seals = fcntl(fd, F_GET_SEALS);

	node->ctl_fd = fd;
	err = -EPROTO;
	if (fstat(fd, &st) || seals < 0 || !(seals & F_SEAL_SHRINK) ||
	    (uint64_t)st.st_size < sizeof(*ctl))
		goto close_fd;
	err = map_segment(node, (uint64_t)st.st_size);
	if (err)
		goto close_fd;
	ctl = node->ctl;
	err = -EPROTO;
	if (ctl->magic != OC_CTL_MAGIC || ctl->abi != OC_CTL_ABI || ctl->nranks != node->nranks ||
	    ctl->bytes != (uint64_t)st.st_size || ctl->area_bytes != OC_AREA_BYTES ||
	    ctl->rank_off > ctl->bytes || ctl->area_off > ctl->bytes ||
	    ctl->area_off < ctl->rank_off + ctl->nranks * sizeof(struct oc_ctl_rank) ||
	    ctl->bytes - ctl->area_off < (uint64_t)ctl->nranks * OC_AREA_BYTES)
		goto unmap;
	node->ranks = (struct oc_ctl_rank *)((char *)ctl + ctl->rank_off);
	return 0;

unmap:
	munmap(node->ctl, (size_t)st.st_size);
	node->ctl = NULL;
close_fd:
	close(fd);
	node->ctl_fd = -1;
	return err;
}

void oc_ctl_close(struct oc_node *node)
{
	if (!node->ctl)
		return;
	oc_file_close(&node->ctl_file, node->ctl_fd);
	munmap(node->ctl, node->ctl->bytes);
	node->ctl = NULL;
}
