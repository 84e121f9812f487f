/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_CALC_ELEMENTS_HH
#define OC_CALC_ELEMENTS_HH

/* Of each instruction set's kernels, and theirs alone: the linker must not take one set's for
 * another's. */

#include <stddef.h>

namespace
{

/* An element wherever it lies, of whatever type the program calls it. */
template <class T> struct __attribute__((packed, may_alias)) loose {
	T value;
};

template <class T> inline T load(const void *p, size_t i)
{
	return static_cast<const loose<T> *>(p)[i].value;
}

inline const char *byte_at(const void *p, size_t off)
{
	return static_cast<const char *>(p) + off;
}

template <class T> inline void store(void *p, size_t i, T value)
{
	static_cast<loose<T> *>(p)[i].value = value;
}

} // namespace

#endif
