/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_EXPECT_H
#define OC_TEST_EXPECT_H

/* Ends a program of unit tests where something does not hold, and says what. */

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(what)                                                                               \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                 \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#endif
