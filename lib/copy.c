// SPDX-License-Identifier: BSD-3-Clause
#include "copy.h"

#include <string.h>

#include "stream.h"

void oc_copy_bytes(void *dst, const void *src, size_t len, bool stream)
{
	if (stream && len >= OC_STREAM_MIN) {
		oc_stream_bytes(dst, src, len);
		oc_stream_fence();
	} else if (len) { /* memcpy takes no NULL, however few bytes */
		memcpy(dst, src, len);
	}
}
