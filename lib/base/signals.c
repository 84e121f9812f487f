// SPDX-License-Identifier: BSD-3-Clause
#include "base/signals.h"

#include <stddef.h>

void oc_signals_hold(sigset_t *before)
{
	struct sigaction stop;
	sigset_t set;

	sigfillset(&set);
	pthread_sigmask(SIG_SETMASK, &set, before);
	if (sigismember(before, SIGTSTP) || sigaction(SIGTSTP, NULL, &stop) ||
	    stop.sa_handler != SIG_DFL)
		return;
	sigdelset(&set, SIGTSTP);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
}
