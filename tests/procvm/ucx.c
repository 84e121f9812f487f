// SPDX-License-Identifier: BSD-3-Clause
/* What tells a program that UCX takes part in. */
void ucp_get_version(unsigned int *major, unsigned int *minor, unsigned int *release)
{
	*major = *minor = *release = 0;
}
