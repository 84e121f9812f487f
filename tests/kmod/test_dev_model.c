// SPDX-License-Identifier: BSD-3-Clause
/*
 * /dev/onecopy: copies against a byte model: any segments on either side, any
 * offsets and bounds, all three kinds of copy; every byte of both memories is
 * compared after each.
 */
#include "dev.h"

#define SPACE	 (64 * 4096)
#define SEGMENTS 24

/* Memory and the bytes it ought to hold. */
struct model {
	uint8_t *memory;
	uint8_t *want;
};

/* An ordered list of pieces of a model, and where each of its bytes is. */
struct side {
	struct model *of;
	struct onecopy_segment segs[SEGMENTS];
	uint32_t nr;
	uint64_t length;
};

static struct model model_create(uint64_t seed)
{
	struct model m = {km_pages(SPACE), km_pages(SPACE)};

	km_fill(m.memory, SPACE, seed);
	memcpy(m.want, m.memory, SPACE);
	return m;
}

static size_t pick_length(uint64_t *seed, size_t most)
{
	size_t len;

	switch (km_below(seed, 5)) {
	case 0:
		len = km_below(seed, 3);
		break;
	case 1:
		len = km_below(seed, 200);
		break;
	case 2:
		len = 4096 * (1 + km_below(seed, 8));
		break;
	default:
		len = km_below(seed, 3 * 4096);
	}
	return len < most ? len : most;
}

/* Disjoint pieces, in any order: overlapping ones would have no defined result. */
static void side_make(struct side *s, struct model *m, uint64_t *seed)
{
	size_t at = 0;

	s->of = m;
	s->nr = 0;
	s->length = 0;
	while (s->nr < SEGMENTS && at < SPACE && km_below(seed, 12)) {
		size_t len;

		at += km_below(seed, 3) ? km_below(seed, 6000) : (-at & 4095);
		if (at >= SPACE)
			break;
		len = pick_length(seed, SPACE - at);
		s->segs[s->nr++] = dv_seg(m->memory + at, len);
		s->length += len;
		at += len;
	}
	for (uint32_t i = s->nr; i > 1; i--) {
		uint32_t j = km_below(seed, i);
		struct onecopy_segment swap = s->segs[i - 1];

		s->segs[i - 1] = s->segs[j];
		s->segs[j] = swap;
	}
}

/* Where byte i of the side ought to be. */
static uint8_t *side_want(const struct side *s, uint64_t i)
{
	const struct onecopy_segment *seg = s->segs;

	while (i >= seg->length)
		i -= seg++->length;
	return s->of->want + (seg->addr + i - (uintptr_t)s->of->memory);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void model_copy(const struct side *src, uint64_t src_off, const struct side *dst,
		       uint64_t dst_off, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		*side_want(dst, dst_off + i) = *side_want(src, src_off + i);
}

static uint64_t pick_offset(const struct side *s, uint64_t *seed)
{
	switch (km_below(seed, 8)) {
	case 0:
		return s->length + km_below(seed, 2);
	case 1:
		return UINT64_MAX - km_below(seed, 5);
	case 2:
	case 3:
		return 0;
	default:
		return km_below(seed, s->length + 1);
	}
}

static uint64_t left(const struct side *s, uint64_t off)
{
	return off < s->length ? s->length - off : 0;
}

/* One copy of one of the three kinds between two models. */
static void step(int fd, struct model *a, struct model *b, uint64_t *seed)
{
	struct onecopy_copy c = {.size = sizeof(c), .copied = 77};
	struct side src, dst;
	uint64_t cookies[2] = {0}, want;
	uint64_t kind = km_below(seed, 3);

	side_make(&src, a, seed);
	side_make(&dst, b, seed);
	if (kind != 0) {
		KM_OK(dv_create_try(fd, src.segs, src.nr, DV_RO, &cookies[0]));
		c.source = cookies[0];
		c.source_offset = pick_offset(&src, seed);
	} else {
		c.local = (uintptr_t)src.segs;
		c.nr_local = src.nr;
	}
	if (kind != 1) {
		KM_OK(dv_create_try(fd, dst.segs, dst.nr, ONECOPY_REGION_WRITE, &cookies[1]));
		c.destination = cookies[1];
		c.destination_offset = pick_offset(&dst, seed);
	} else {
		c.local = (uintptr_t)dst.segs;
		c.nr_local = dst.nr;
	}
	c.length = km_below(seed, 3) ? UINT64_MAX : km_below(seed, 70000);
	want = least(c.length,
		     least(left(&src, c.source_offset), left(&dst, c.destination_offset)));
	KM_OK(ioctl(fd, ONECOPY_IOC_COPY, &c));
	KM_EQ(c.copied, want);
	model_copy(&src, c.source_offset, &dst, c.destination_offset, want);
	KM_TRUE(!memcmp(a->memory, a->want, SPACE));
	KM_TRUE(!memcmp(b->memory, b->want, SPACE));
	for (int i = 0; i < 2; i++)
		if (cookies[i])
			KM_OK(dv_destroy(fd, cookies[i]));
}

static void property(void)
{
	uint64_t seed = km_seed();
	struct model a = model_create(seed), b = model_create(seed + 1);
	unsigned long rounds = km_scaled(20000);
	int fd = dv_open();

	for (unsigned long i = 0; i < rounds; i++) {
		bool swap = km_below(&seed, 2);

		step(fd, swap ? &b : &a, swap ? &a : &b, &seed);
	}
	km_note("%lu copies agree with the model", rounds);
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "property", .run = property, .limit = 60},
		{0},
	};

	return km_main(cases, argc, argv);
}
