// SPDX-License-Identifier: BSD-3-Clause
#include "bytes/stream.h"

#include <stdbool.h>
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

void oc_stream_twice(void *dst, void *other, const void *src, size_t len)
{
	size_t head = oc_stream_head(dst), body, done;
	char *d = dst, *e = other;
	const char *s = src;

	if (head > len)
		head = len;
	body = (len - head) & ~(size_t)(OC_STREAM_LINE - 1);
	done = head + body;
	memcpy(d, s, head);
	memcpy(e, s, head);
	oc_stream_lines_twice(d + head, e + head, s + head, body / OC_STREAM_LINE);
	memcpy(d + done, s + done, len - done);
	memcpy(e + done, s + done, len - done);
}

/* Whether all places are cut in the same way. */
static bool agree(void *const *dst, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (oc_stream_head(dst[i]) != oc_stream_head(dst[0]))
			return false;
	return true;
}

void oc_stream_pieces(void *const *dst, const void *const *src, size_t n, size_t len)
{
	size_t head = oc_stream_head(dst[0]), body;
	const void *from[OC_STREAM_LANES_MAX];
	void *to[OC_STREAM_LANES_MAX];

	if (n == 1 || head >= len || !agree(dst, n)) {
		for (size_t i = 0; i < n; i++)
			oc_stream_bytes(dst[i], src[i], len);
		return;
	}
	body = (len - head) & ~(size_t)(OC_STREAM_LINE - 1);
	for (size_t i = 0; i < n; i++) {
		to[i] = (char *)dst[i] + head;
		from[i] = (const char *)src[i] + head;
		memcpy(dst[i], src[i], head);
		memcpy((char *)to[i] + body, (const char *)from[i] + body, len - head - body);
	}
	oc_stream_beside(to, from, n, body / OC_STREAM_LINE);
}
