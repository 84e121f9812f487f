// SPDX-License-Identifier: BSD-3-Clause
#include "base/thp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/file.h"

#define SETTINGS  "/sys/kernel/mm/transparent_hugepage/"
#define MAX_ORDER 10 /* of the kernel's free blocks, unless it was built otherwise */
#define OF_2_MIB  SETTINGS "hugepages-2048kB/" /* Linux 6.8 */

/* The word in brackets, as in "always [madvise] never", "" without one. */
static const char *read_setting(const char *path, char *text, size_t size)
{
	char *open_at, *close_at;

	oc_file_read_text(path, text, size);
	open_at = strchr(text, '[');
	close_at = open_at ? strchr(open_at, ']') : NULL;
	if (!close_at)
		return "";
	*close_at = '\0';
	return open_at + 1;
}

static bool is(const char *word, const char *other)
{
	return !strcmp(word, other);
}

enum oc_thp oc_thp_private(void)
{
	char text[128];
	const char *word = read_setting(OF_2_MIB "enabled", text, sizeof(text));

	if (!*word || is(word, "inherit"))
		word = read_setting(SETTINGS "enabled", text, sizeof(text));
	if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0)
		return OC_THP_NEVER;
	if (is(word, "always"))
		return OC_THP_ALWAYS;
	return is(word, "madvise") ? OC_THP_ADVISE : OC_THP_NEVER;
}

enum oc_thp_shared oc_thp_shared(void)
{
	char text[128], own_text[128];
	const char *word = read_setting(SETTINGS "shmem_enabled", text, sizeof(text));
	const char *own = read_setting(OF_2_MIB "shmem_enabled", own_text, sizeof(own_text));

	/* These two go before what is said of one size. */
	if (is(word, "deny"))
		return OC_THP_SHARED_DENIED;
	if (*own && !is(own, "inherit") && !is(word, "force"))
		word = own;
	if (is(word, "advise"))
		return OC_THP_SHARED_ADVISE;
	if (is(word, "always") || is(word, "within_size") || is(word, "force"))
		return OC_THP_SHARED_ALWAYS;
	return OC_THP_SHARED_NEVER;
}

bool oc_thp_reports_free_pages(void)
{
	char text[32], *end;
	unsigned long order;

	if (oc_file_read_text("/sys/module/page_reporting/parameters/page_reporting_order", text,
			      sizeof(text)) <= 0)
		return false;
	/* Until something reports it is the order of no block. */
	order = strtoul(text, &end, 10);
	return end != text && text[0] != '-' && order <= MAX_ORDER;
}
