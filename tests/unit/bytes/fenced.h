/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FENCED_H
#define FENCED_H

#include <stdbool.h>

/*
 * Whether all that has been streamed since the program began has been fenced. What announces data
 * may be seen before a streamed store that no fence is behind, yet hardly ever is: no result shows
 * it. So the calls of bytes/stream.h are linked to ones that keep count (tests/meson.build,
 * --wrap).
 */
bool all_fenced(void);

#endif
