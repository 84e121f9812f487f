// SPDX-License-Identifier: BSD-3-Clause
/*
 * The heap's fork handlers are the first of all (lib/heap/fork.c), though libraries that the
 * program is linked to register theirs before our constructor runs: pthread_atfork(3), which is
 * linked into each of them, calls the C library by this name.
 */
#include <dlfcn.h>
#include <errno.h>

#include "heap/fork.h"

typedef int register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			    void *library);

__attribute__((visibility("default"))) register_atfork __register_atfork;

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
		      void *library)
{
	register_atfork *next = (register_atfork *)dlsym(RTLD_NEXT, "__register_atfork");

	oc_heap_fork_register();
	return next ? next(prepare, parent, child, library) : ENOMEM;
}
