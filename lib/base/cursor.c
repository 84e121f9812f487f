// SPDX-License-Identifier: BSD-3-Clause
#include "base/cursor.h"

static struct iovec read_segment(const struct iovec *iov)
{
	return (struct iovec){.iov_base = __atomic_load_n(&iov->iov_base, __ATOMIC_RELAXED),
			      .iov_len = __atomic_load_n(&iov->iov_len, __ATOMIC_RELAXED)};
}

void oc_cursor_init(struct oc_cursor *cursor, const struct iovec *iov, size_t count,
		    uint64_t offset)
{
	*cursor = (struct oc_cursor){.iov = iov, .count = count};
	oc_cursor_skip(cursor, offset);
}

bool oc_cursor_piece(struct oc_cursor *cursor, struct iovec *piece)
{
	while (cursor->count) {
		struct iovec seg = read_segment(cursor->iov);

		if (seg.iov_len > cursor->off) {
			piece->iov_base = (char *)seg.iov_base + cursor->off;
			piece->iov_len = seg.iov_len - cursor->off;
			return true;
		}
		cursor->iov++;
		cursor->count--;
		cursor->off = 0;
	}
	return false;
}

void oc_cursor_skip(struct oc_cursor *cursor, uint64_t bytes)
{
	struct iovec piece;

	while (bytes && oc_cursor_piece(cursor, &piece)) {
		if (bytes < piece.iov_len) {
			cursor->off += bytes;
			return;
		}
		bytes -= piece.iov_len;
		cursor->iov++;
		cursor->count--;
		cursor->off = 0;
	}
}

size_t oc_cursor_gather(const struct oc_cursor *cursor, struct iovec *pieces, size_t max,
			size_t limit, size_t *bytes)
{
	struct oc_cursor at = *cursor;
	size_t n = 0, sum = 0;

	while (n < max && sum < limit && oc_cursor_piece(&at, &pieces[n])) {
		if (pieces[n].iov_len > limit - sum)
			pieces[n].iov_len = limit - sum;
		sum += pieces[n++].iov_len;
		at.iov++;
		at.count--;
		at.off = 0;
	}
	*bytes = sum;
	return n;
}
