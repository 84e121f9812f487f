/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_TEST_FAKE_CALL_H
#define OC_TEST_FAKE_CALL_H

/* Some system calls, made by syscall(2), as a test wants them; for the one file that defines
 * fake_call(). */

#include <stdarg.h>
#include <stdbool.h>

#include "base/raw_call.h"

/* True with the result, and errno, of a call that the kernel does not get. */
bool fake_call(long number, const long arg[6], long *result);

long syscall(long number, ...)
{
	long arg[6], result;
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (fake_call(number, arg, &result))
		return result;
	return oc_raw_call(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

#endif
