// SPDX-License-Identifier: BSD-3-Clause
#include "base/env.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <onecopy/onecopy.h>

static struct oc_env env;
static bool env_read;

static bool is_off(const char *value)
{
	return value && (!strcmp(value, "off") || !strcmp(value, "0") || !strcmp(value, "no"));
}

static enum oc_env_thp parse_thp(const char *value)
{
	if (value && !strcmp(value, "always"))
		return OC_ENV_THP_ALWAYS;
	return (value && !strcmp(value, "never")) || is_off(value) ? OC_ENV_THP_NEVER
								   : OC_ENV_THP_AUTO;
}

static uint32_t parse_mech(const char *list)
{
	static const char *const names[OC_MECH_COUNT] = {OC_MECH_NAMES};
	uint32_t mask = 0;

	while (*list) {
		size_t len = strcspn(list, ", ");

		for (int i = 0; i < OC_MECH_COUNT; i++)
			if (strlen(names[i]) == len && !strncmp(names[i], list, len))
				mask |= 1u << i;
		list += len;
		list += strspn(list, ", ");
	}
	return mask;
}

const struct oc_env *oc_env(void)
{
	const char *value;

	/* Racing readers compute the same values: harmless. */
	if (__atomic_load_n(&env_read, __ATOMIC_ACQUIRE))
		return &env;
	value = getenv("ONECOPY");
	env.profile = value && !strcmp(value, "profile");
	env.off = env.profile || is_off(value);
	env.heap_off = (env.off && !env.profile) || is_off(getenv("ONECOPY_HEAP"));
	env.static_off = is_off(getenv("ONECOPY_STATIC"));
	env.messages_off = is_off(getenv("ONECOPY_MESSAGES"));
	env.thp = parse_thp(getenv("ONECOPY_THP"));
	value = getenv("ONECOPY_VERBOSE");
	env.verbose = value && *value && !is_off(value);
	value = getenv("ONECOPY_MECH");
	env.mech = value && *value ? parse_mech(value) : (1u << OC_MECH_COUNT) - 1;
	value = getenv("ONECOPY_MIN");
	env.min = value ? strtoull(value, NULL, 0) : 0;
	env.stats = getenv("ONECOPY_STATS");
	__atomic_store_n(&env_read, true, __ATOMIC_RELEASE);
	return &env;
}

bool oc_env_is_watched(void)
{
	static const char tool[] = "vgpreload_", core[] = "core-";
	const char *at = getenv("LD_PRELOAD");

	while (at && (at = strstr(at, tool))) {
		at += strlen(tool);
		if (strncmp(at, core, strlen(core)))
			return true;
	}
	return false;
}

static int note_rank = -1;

void oc_note_rank(int rank)
{
	__atomic_store_n(&note_rank, rank, __ATOMIC_RELAXED);
}

static struct {
	pthread_mutex_t lock;
	bool on;
	size_t used;
	char text[OC_NOTE_KEPT];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

void oc_note_keep(void)
{
	pthread_mutex_lock(&kept.lock);
	kept.on = true;
	pthread_mutex_unlock(&kept.lock);
}

size_t oc_note_kept(char *text)
{
	size_t used;

	pthread_mutex_lock(&kept.lock);
	used = kept.used;
	memcpy(text, kept.text, used);
	kept.used = 0;
	kept.on = false;
	pthread_mutex_unlock(&kept.lock);
	return used;
}

/* @line[@len] with its newline. False if it is to be said now. */
static bool keep(const char *line, size_t len)
{
	bool kept_it;

	/* In a child of fork somebody who is not there may hold it. */
	if (pthread_mutex_trylock(&kept.lock))
		return false;
	kept_it = kept.on && len <= sizeof(kept.text) - kept.used;
	if (kept_it) {
		memcpy(kept.text + kept.used, line, len);
		kept.used += len;
	}
	pthread_mutex_unlock(&kept.lock);
	return kept_it;
}

void oc_note_for(const char *who, const char *text, size_t len)
{
	char line[OC_NOTE_LINE + 160];
	int used = snprintf(line, sizeof(line), "onecopy: %s%s%.*s\n", who, *who ? ": " : "",
			    (int)len, text);

	if (used >= (int)sizeof(line))
		used = (int)sizeof(line) - 1;
	if (write(STDERR_FILENO, line, (size_t)used) < 0)
		return; /* nowhere to say it */
}

void oc_note(const char *fmt, ...)
{
	int rank = __atomic_load_n(&note_rank, __ATOMIC_RELAXED);
	char line[OC_NOTE_LINE], who[24] = "";
	va_list args;
	int len;

	if (!oc_env()->verbose)
		return;
	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	if (len < 0)
		return;
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len] = '\n';
	if (keep(line, (size_t)len + 1))
		return;
	if (rank >= 0)
		snprintf(who, sizeof(who), "rank %d", rank);
	oc_note_for(who, line, (size_t)len);
}
