// SPDX-License-Identifier: BSD-3-Clause
/* UCX's memory events: its own test of its hooks passes, and they fire. */
#include <ucm/api/ucm.h>

#include "hooks.h"

static void hear(ucm_event_type_t type, ucm_event_t *event, void *arg)
{
	hooks_hear(event->vm_unmapped.address, event->vm_unmapped.size);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	CHECK(ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, 0, hear, NULL) == UCS_OK);
	CHECK(ucm_test_events(UCM_EVENT_VM_UNMAPPED) == UCS_OK);
	hooks_check(argv[1]);
	return 0;
}
