// SPDX-License-Identifier: BSD-3-Clause
#include <onecopy/onecopy.h>

unsigned int oc_version(void)
{
	return ONECOPY_VERSION_MAJOR << 16 | ONECOPY_VERSION_MINOR;
}
