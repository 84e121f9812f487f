// SPDX-License-Identifier: BSD-3-Clause
#include "runs.h"

#include <errno.h>
#include <stdlib.h>

int oc_runs_add(struct oc_runs *runs, int64_t at, uint64_t len)
{
	struct oc_run *last = runs->n ? &runs->run[runs->n - 1] : NULL;
	int64_t end;

	if (!len)
		return 0;
	if (len > INT64_MAX || !oc_runs_place(at, 1, (int64_t)len, &end) ||
	    ++*runs->work > OC_RUNS_WORK_MAX)
		return -E2BIG;
	if (last && last->at + (int64_t)last->len == at) {
		last->len += len;
		return 0;
	}
	if (runs->n == runs->room) {
		uint32_t room = runs->room ? 2 * runs->room : 8;
		struct oc_run *grown = realloc(runs->run, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		runs->run = grown;
		runs->room = room;
	}
	runs->run[runs->n++] = (struct oc_run){.at = at, .len = len};
	return 0;
}

int oc_runs_repeat(struct oc_runs *runs, const struct oc_runs *element, int64_t at, int64_t count)
{
	int64_t begin, from;
	int err = 0;

	if (count < 0)
		return -EINVAL;
	if (element->n == 1 && element->extent == (int64_t)element->run[0].len) {
		if (!oc_runs_place(at, 1, element->run[0].at, &from) ||
		    !oc_runs_place(0, count, element->extent, &begin))
			return -E2BIG;
		return oc_runs_add(runs, from, (uint64_t)begin);
	}
	for (int64_t i = 0; i < count && element->n && !err; i++) {
		if (!oc_runs_place(at, i, element->extent, &begin))
			return -E2BIG;
		for (uint32_t k = 0; k < element->n && !err; k++)
			err = oc_runs_place(begin, 1, element->run[k].at, &from)
				      ? oc_runs_add(runs, from, element->run[k].len)
				      : -E2BIG;
	}
	return err;
}
