// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/stream.h"

#include <string.h>

void oc_stream_bytes(void *dst, const void *src, size_t len)
{
	char *d = dst;
	const char *s = src;
	size_t head = oc_stream_head(d);
	size_t body;

	if (head > len)
		head = len;
	body = (len - head) & ~(size_t)(OC_STREAM_LINE - 1);
	memcpy(d, s, head);
	oc_stream_lines(d + head, s + head, body / OC_STREAM_LINE);
	memcpy(d + head + body, s + head + body, len - head - body);
}
