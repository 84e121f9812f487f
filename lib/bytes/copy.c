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

void oc_copy_each(void *const *dst, size_t ndst, const void *src, size_t len, bool stream)
{
	for (size_t off = 0; off < len; off += OC_COPY_TURN) {
		size_t part = len - off < OC_COPY_TURN ? len - off : OC_COPY_TURN;

		for (size_t d = 0; d < ndst; d++)
			if (dst[d] != src)
				oc_copy_bytes((char *)dst[d] + off, (const char *)src + off, part,
					      stream);
	}
}
