// SPDX-License-Identifier: BSD-3-Clause
#include "exec/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/relay.h"
#include "heap/heap.h"
#include "heap/place.h"
#include "heap/static_data.h"

#define PAGE ((size_t)4096)

/* Copying a shorter run takes hardly longer than a look at where it is. */
#define PLACED_MIN ((uint64_t)1 << 10)

static bool fits(const struct oc_layout *layout, size_t bytes)
{
	return !layout || (layout->npieces && layout->npieces <= OC_PIECES_MAX && layout->bytes &&
			   bytes / layout->bytes == layout->count && !(bytes % layout->bytes));
}

bool oc_pieces_fit(const struct oc_bind *bind)
{
	return fits(bind->send_layout, bind->send_bytes) &&
	       fits(bind->recv_layout, bind->recv_bytes);
}

uint64_t oc_pieces_find(const struct oc_bind *bind, enum oc_slot slot)
{
	const struct oc_place own = oc_bind_place(bind, slot, 0);
	const struct oc_layout *layout = own.layout;
	size_t bytes = slot == OC_SLOT_SEND ? bind->send_bytes : bind->recv_bytes;
	int64_t low = layout ? layout->low : 0;
	const char *at;

	if (layout)
		bytes = (size_t)(layout->high - low);
	else if (!own.base)
		return OC_PIECES_NOWHERE;
	at = oc_heap_find(oc_layout_at(own.base, low), bytes);
	return at ? (uintptr_t)at - (uint64_t)low - oc_heap_range.base : OC_PIECES_NOWHERE;
}

uint64_t oc_pieces_offer(struct oc_op *op, enum oc_slot slot, uint64_t origin)
{
	const struct oc_place own = oc_bind_place(op->bind, slot, 0);
	struct oc_layout *told;

	if (!own.layout)
		return origin;
	told = oc_keep_take(&op->layouts[slot], oc_layout_size(own.layout->npieces));
	if (!told)
		return OC_PIECES_NOWHERE;
	memcpy(told, own.layout, oc_layout_size(own.layout->npieces));
	told->origin = origin;
	return OC_BOARD_PIECES | ((uintptr_t)told - oc_heap_range.base);
}

/* What is to be placed next: runs with no whole page between them. */
struct stretch {
	char *from;
	char *end;
};

static void place_run(struct stretch *stretch, char *at, size_t len)
{
	if (at >= stretch->from && at < stretch->end + PAGE) {
		if (at + len > stretch->end)
			stretch->end = at + len;
		return;
	}
	oc_heap_place(stretch->from, (size_t)(stretch->end - stretch->from));
	*stretch = (struct stretch){at, at + len};
}

static void place_element(struct stretch *stretch, const struct oc_layout *layout, char *element)
{
	for (uint32_t i = 0; i < layout->npieces; i++) {
		const struct oc_layout_piece *piece = &layout->piece[i];
		uint64_t runs = oc_layout_runs(piece, piece[1].start);

		for (uint64_t k = 0; k < runs; k++)
			place_run(stretch,
				  oc_layout_at(element, piece->at + (int64_t)k * piece->stride),
				  piece->len);
	}
}

void oc_pieces_place_recv(const struct oc_bind *bind, uint64_t origin)
{
	const struct oc_layout *layout = bind->recv_layout;
	char *first = (char *)oc_heap_range.base + origin;
	struct stretch stretch;

	if (!layout) {
		oc_heap_place(first, bind->recv_bytes);
		return;
	}
	if (layout->bytes / layout->nruns < PLACED_MIN ||
	    oc_heap_is_placed(oc_layout_at(first, layout->low),
			      (size_t)(layout->high - layout->low)))
		return;
	stretch.from = stretch.end = oc_layout_at(first, layout->low);
	for (uint64_t i = 0; i < layout->count; i++)
		place_element(&stretch, layout, oc_layout_at(first, (int64_t)i * layout->extent));
	oc_heap_place(stretch.from, (size_t)(stretch.end - stretch.from));
}

void oc_pieces_end(struct oc_op *op)
{
	oc_keep_give(&op->layouts[OC_SLOT_SEND]);
	oc_keep_give(&op->layouts[OC_SLOT_RECV]);
}

/* The first @len bytes of a peer's layout. */
static int fetch(struct oc_op *op, uint32_t peer, enum oc_slot slot, void *to, size_t len)
{
	const struct oc_board_line *line = oc_op_line(op, peer);
	uint64_t at = (slot == OC_SLOT_SEND ? line->send : line->recv) & ~OC_BOARD_PIECES;
	const char *from = oc_op_arena(op, peer, at, len);

	if (!from)
		return oc_relay_move(op, peer, OC_SLOT_COUNT + slot, 0, to, len, false);
	memcpy(to, from, len);
	return 0;
}

static int learn(struct oc_op *op, uint32_t peer, enum oc_slot slot, struct oc_told *told)
{
	struct oc_layout head, *layout;
	int err = fetch(op, peer, slot, &head, sizeof(head));

	if (!err && head.npieces > OC_PIECES_MAX)
		err = -EMSGSIZE;
	if (err)
		return err;
	layout = oc_group_layout_room(told, oc_layout_size(head.npieces));
	err = layout ? fetch(op, peer, slot, layout, oc_layout_size(head.npieces)) : -ENOMEM;
	if (!err && layout->npieces != head.npieces)
		err = -EMSGSIZE;
	if (!err)
		told->seq = op->issued.seq;
	return err;
}

/* Where that is noted. NULL without memory. */
static struct oc_told *note_of(struct oc_op *op, uint32_t peer, enum oc_slot slot)
{
	struct oc_op_room *room = op->room;

	if (!room->told)
		room->told = calloc(2 * (size_t)op->group->size, sizeof(*room->told));
	return room->told ? &room->told[oc_op_slot_index(op, peer, slot)] : NULL;
}

/* A peer's layout, or NULL with op->err set. */
static const struct oc_layout *told_by(struct oc_op *op, uint32_t peer, enum oc_slot slot)
{
	struct oc_told *told = note_of(op, peer, slot);
	int err;

	if (told && told->seq == op->issued.seq)
		return told->layout;
	err = told ? learn(op, peer, slot, told) : -ENOMEM;
	if (!err)
		return told->layout;
	op->err = err;
	return NULL;
}

char *oc_pieces_at(struct oc_op *op, struct oc_ref ref, size_t len)
{
	const struct oc_layout *layout;
	struct oc_run run;

	if (ref.rank == op->group->rank) {
		struct oc_place own = oc_bind_place(op->bind, ref.slot, ref.off);

		run = oc_layout_run(own.layout, ref.off);
		return run.len >= len ? oc_layout_at(own.base, run.at) : NULL;
	}
	layout = told_by(op, ref.rank, ref.slot);
	if (!layout)
		return NULL;
	run = oc_layout_run(layout, ref.off);
	if (run.len < len)
		return NULL;
	return oc_op_arena(op, ref.rank, layout->origin + (uint64_t)run.at, len);
}

bool oc_pieces_place(struct oc_op *op, struct oc_ref ref, struct oc_place *place)
{
	const struct oc_layout *layout;
	char *low;

	if (ref.rank == op->group->rank) {
		*place = oc_bind_place(op->bind, ref.slot, ref.off);
		return true;
	}
	layout = told_by(op, ref.rank, ref.slot);
	if (!layout)
		return false;
	low = oc_op_arena(op, ref.rank, layout->origin + (uint64_t)layout->low,
			  (size_t)(layout->high - layout->low));
	*place = (struct oc_place){.base = low ? oc_layout_at(low, -layout->low) : NULL,
				   .layout = layout,
				   .off = ref.off};
	return low;
}

int oc_pieces_move(struct oc_op *op, struct oc_ref ref, void *here, size_t len, bool put)
{
	struct oc_place one = {.base = here}, slot;

	if (!oc_pieces_place(op, ref, &slot))
		return op->err ? op->err
			       : oc_relay_move(op, ref.rank, ref.slot, ref.off, here, len, put);
	oc_layout_copy(put ? &slot : &one, put ? &one : &slot, len, op->stores.past);
	oc_op_count(op, ref.slot, ref.rank, len);
	return 0;
}
