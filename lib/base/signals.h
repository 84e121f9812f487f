/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_SIGNALS_H
#define OC_SIGNALS_H

#include <signal.h>

/* Blocks all signals in this thread, which had *@before; but for the terminal's stop (SIGTSTP),
 * where it stops the process and no handler of the program's runs. */
void oc_signals_hold(sigset_t *before);

#endif
