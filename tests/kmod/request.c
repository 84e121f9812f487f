// SPDX-License-Identifier: BSD-3-Clause
#include "request.h"

int request_fd;

static uint64_t region;
static uint8_t *memory;
static struct onecopy_segment segment;

void requests_init(void)
{
	int owner = dv_open();

	request_fd = dv_open();
	memory = km_pages(4 * km_page());
	segment = dv_seg(memory, 64);
	region = dv_create(owner, km_pages(4 * km_page()), 4 * km_page(), DV_RW);
}

static void fill_info(union argument *a)
{
	a->size = sizeof(a->info);
}

static void fill_create(union argument *a)
{
	a->create = (struct onecopy_region_create){
		.size = sizeof(a->create),
		.flags = DV_RW,
		.segments = (uintptr_t)&segment,
		.nr_segments = 1,
	};
}

static void fill_destroy(union argument *a)
{
	a->destroy = (struct onecopy_region_destroy){
		.size = sizeof(a->destroy),
		.cookie = dv_create(request_fd, memory, 8, DV_RW),
	};
}

static void fill_region(union argument *a)
{
	a->region = (struct onecopy_region_info){.size = sizeof(a->region), .cookie = region};
}

static void fill_copy(union argument *a)
{
	a->copy = (struct onecopy_copy){
		.size = sizeof(a->copy),
		.source = region,
		.local = (uintptr_t)&segment,
		.nr_local = 1,
		.length = 10,
	};
}

static void fill_map(union argument *a)
{
	a->map = (struct onecopy_map){
		.size = sizeof(a->map),
		.flags = ONECOPY_MAP_READ,
		.cookie = region,
		.length = km_page(),
	};
}

static void set_up(union argument *a)
{
	a->setup = (struct onecopy_async_setup){
		.size = sizeof(a->setup),
		.nr_slots = 8,
		.eventfd = -1,
	};
}

/* Once a file. */
static void fill_setup(union argument *a)
{
	KM_OK(close(request_fd));
	request_fd = dv_open();
	set_up(a);
}

/* Nothing to take back: ENOENT is how a good one ends. */
static void fill_cancel(union argument *a)
{
	set_up(a);
	if (ioctl(request_fd, ONECOPY_IOC_ASYNC_SETUP, a))
		KM_EQ(errno, EBUSY);
	a->cancel = (struct onecopy_cancel){.size = sizeof(a->cancel), .slot = 1};
}

const struct request requests[] = {
	{"INFO", ONECOPY_IOC_INFO, 56, fill_info, 0, 0, {offsetof(struct onecopy_info, reserved)}},
	{"REGION_CREATE",
	 ONECOPY_IOC_REGION_CREATE,
	 48,
	 fill_create,
	 0,
	 0x7f,
	 {offsetof(struct onecopy_region_create, reserved),
	  offsetof(struct onecopy_region_create, reserved2)}},
	{"REGION_DESTROY", ONECOPY_IOC_REGION_DESTROY, 16, fill_destroy, 0, 0, {0}},
	{"REGION_INFO", ONECOPY_IOC_REGION_INFO, 48, fill_region, 0, 0, {0}},
	{"COPY", ONECOPY_IOC_COPY, 72, fill_copy, 0, 0x7, {0}},
	{"MAP", ONECOPY_IOC_MAP, 72, fill_map, 0, 0x3, {0}},
	{"ASYNC_SETUP", ONECOPY_IOC_ASYNC_SETUP, 16, fill_setup, 0, 0, {0}},
	{"CANCEL",
	 ONECOPY_IOC_CANCEL,
	 16,
	 fill_cancel,
	 ENOENT,
	 0,
	 {offsetof(struct onecopy_cancel, reserved)}},
	{0},
};
