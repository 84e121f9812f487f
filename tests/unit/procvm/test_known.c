// SPDX-License-Identifier: BSD-3-Clause
/* Memory that is certain to be there, and memory next to it that is not. */
#include "../../../procvm/known.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "../expect.h"

#define ROOM ((size_t)256 << 10)

extern char _end[];

static char zeros[ROOM], data[ROOM] = {1};
static const char constant[ROOM] = {1};
static char *const relocated[] = {data};
static char *of_main;
static ucontext_t coroutine, back;

/* The compiler shall not see what it points into. */
static char *opaque(char *at)
{
	__asm__("" : "+r"(at));
	return at;
}

static void static_data(void)
{
	char *end = opaque(_end);

	EXPECT(oc_procvm_known(zeros, ROOM));
	EXPECT(oc_procvm_known(data, ROOM));
	EXPECT(oc_procvm_known(data + ROOM - 1, 1));
	EXPECT(oc_procvm_known(end - 1, 1));
	EXPECT(!oc_procvm_known(end - 1, 2));
	EXPECT(!oc_procvm_known(constant, 1));
	EXPECT(!oc_procvm_known(relocated, 1));
	EXPECT(!oc_procvm_known((char *)0 + 1, 1));
	EXPECT(!oc_procvm_known(zeros, SIZE_MAX));
}

static void mappings(void)
{
	char *at = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(at != MAP_FAILED);
	EXPECT(!oc_procvm_known(at, 1));
	munmap(at, ROOM);
}

__attribute__((noinline)) static void deeper(char *above)
{
	char here[4096];

	here[0] = 1;
	EXPECT(oc_procvm_known(here, sizeof(here)));
	EXPECT(oc_procvm_known(above, 1));
	EXPECT(oc_procvm_known(here, (size_t)(above - here) + 1));
	EXPECT(!oc_procvm_known(opaque(here) - ROOM, 1));
	EXPECT(!oc_procvm_known(opaque(here) - ROOM, ROOM + 1));
}

static void *elsewhere(void *arg)
{
	char here[4096];

	here[0] = 1;
	EXPECT(!oc_procvm_known(here, 1));
	EXPECT(!oc_procvm_known(of_main, 1));
	return arg;
}

static void in_coroutine(void)
{
	elsewhere(NULL);
}

__attribute__((unused)) static void stacks(void)
{
	char here[4096], *stack = malloc(ROOM);
	pthread_t thread;

	here[0] = 1;
	deeper(here);
	of_main = here;
	EXPECT(!pthread_create(&thread, NULL, elsewhere, NULL));
	pthread_join(thread, NULL);
	EXPECT(stack && !getcontext(&coroutine));
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = ROOM;
	coroutine.uc_link = &back;
	makecontext(&coroutine, in_coroutine, 0);
	EXPECT(!swapcontext(&back, &coroutine));
	free(stack);
}

/* What the place of one that was unloaded holds now nobody knows. */
static void libraries(void)
{
	void *library;

	EXPECT(oc_procvm_known(stdout, sizeof(*stdout)));
	library = dlopen("libresolv.so.2", RTLD_NOW);
	EXPECT(library);
	EXPECT(oc_procvm_known(stdout, sizeof(*stdout)));
	dlclose(library);
	EXPECT(!oc_procvm_known(stdout, sizeof(*stdout)));
	EXPECT(oc_procvm_known(data, ROOM));
}

int main(void)
{
	static_data();
	mappings();
	/* Sanitizers have arrays elsewhere, and threads of another kind. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	stacks();
#endif
	libraries();
	return 0;
}
