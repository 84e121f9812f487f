// SPDX-License-Identifier: BSD-3-Clause
#include "fenced.h"

#include "bytes/stream.h"

/* The names are the linker's. */
void __real_oc_stream_bytes(void *dst, const void *src, size_t len);
void __wrap_oc_stream_bytes(void *dst, const void *src, size_t len);
void __real_oc_stream_pieces(void *const *dst, const void *const *src, size_t n, size_t len);
void __wrap_oc_stream_pieces(void *const *dst, const void *const *src, size_t n, size_t len);
void __real_oc_stream_twice(void *dst, void *other, const void *src, size_t len);
void __wrap_oc_stream_twice(void *dst, void *other, const void *src, size_t len);
void __real_oc_stream_row(struct oc_stream_row dst, struct oc_stream_row src, size_t len, size_t n);
void __wrap_oc_stream_row(struct oc_stream_row dst, struct oc_stream_row src, size_t len, size_t n);
void __real_oc_stream_fence(void);
void __wrap_oc_stream_fence(void);

static bool open;

void __wrap_oc_stream_bytes(void *dst, const void *src, size_t len)
{
	open = true;
	__real_oc_stream_bytes(dst, src, len);
}

void __wrap_oc_stream_pieces(void *const *dst, const void *const *src, size_t n, size_t len)
{
	open = true;
	__real_oc_stream_pieces(dst, src, n, len);
}

void __wrap_oc_stream_twice(void *dst, void *other, const void *src, size_t len)
{
	open = true;
	__real_oc_stream_twice(dst, other, src, len);
}

void __wrap_oc_stream_row(struct oc_stream_row dst, struct oc_stream_row src, size_t len, size_t n)
{
	open = true;
	__real_oc_stream_row(dst, src, len, n);
}

void __wrap_oc_stream_fence(void)
{
	open = false;
	__real_oc_stream_fence();
}

bool all_fenced(void)
{
	return !open;
}
