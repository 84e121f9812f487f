// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/copy.h"

#include <string.h>

#include "bytes/stream.h"

void oc_copy_bytes(void *dst, const void *src, size_t len, bool stream)
{
	if (stream && len >= OC_STREAM_MIN) {
		oc_stream_bytes(dst, src, len);
		oc_stream_fence();
	} else if (len) { /* memcpy takes no NULL, however few bytes */
		memcpy(dst, src, len);
	}
}

/* The first two of @dst at once. */
static bool pays_twice(void *const *dst, const void *src, size_t len)
{
	return len >= OC_STREAM_MIN && dst[0] != src && dst[1] != src &&
	       oc_stream_head(dst[0]) == oc_stream_head(dst[1]) && oc_stream_has_twice();
}

void oc_copy_each(void *const *dst, size_t ndst, const void *src, size_t len, bool stream)
{
	for (size_t off = 0; off < len; off += OC_COPY_TURN) {
		size_t part = len - off < OC_COPY_TURN ? len - off : OC_COPY_TURN;
		const char *from = (const char *)src + off;

		for (size_t d = 0; d < ndst; d++) {
			char *to = (char *)dst[d] + off;

			if (stream && d + 1 < ndst && pays_twice(dst + d, src, part)) {
				oc_stream_twice(to, (char *)dst[++d] + off, from, part);
				oc_stream_fence();
			} else if (dst[d] != src) {
				oc_copy_bytes(to, from, part, stream);
			}
		}
	}
}
