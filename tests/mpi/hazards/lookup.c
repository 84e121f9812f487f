// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that is linked with no MPI: it loads one, and looks its functions up. lookup LIBRARY
 * [deepbind], compiled with that library's mpi.h. What dlsym() says of other things must be as
 * ever.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (1 << 20)

#ifdef OPEN_MPI
#define HANDLE(type, name, constant) ((type)find("ompi_mpi_" name))
#else
#define HANDLE(type, name, constant) (constant)
#endif

static void *library;
static bool preloaded; /* onecopy takes the variable away */

static void fail(const char *what)
{
	fprintf(stderr, "lookup: %s\n", what);
	exit(1);
}

static void *find(const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fail(name);
	return found;
}

/* As POSIX wants it to be asked: an error is what dlerror() says. */
static void look_at_others(void)
{
	Dl_info info;
	void *next;

	dlerror();
	find("MPI_Get_version");
	find("MPI_Bcast");
	if (dlerror())
		fail("an error, though nobody failed");
	if (dlsym(library, "MPI_Has_no_such_function") || !dlerror())
		fail("no error of what is not there");
	/* A call that not all MPIs have. */
	if (!dlsym(library, "MPI_Session_init") &&
	    (dlsym(RTLD_DEFAULT, "MPI_Session_init") || !dlerror()))
		fail("a call that the MPI has not");
	dlerror();
	if (dlsym(RTLD_DEFAULT, "pthread_create") != (void *)pthread_create)
		fail("another RTLD_DEFAULT");
	/* After the program come the preloaded libraries, and malloc of one of them. After these
	 * comes libc. */
	next = dlsym(RTLD_NEXT, "malloc");
	if (!next || !dladdr(next, &info) ||
	    !strstr(info.dli_fname, preloaded ? "libonecopy" : "libc"))
		fail("another RTLD_NEXT");
	if (preloaded && dlsym(library, "MPI_Bcast") != dlsym(library, "PMPI_Bcast"))
		fail("a function that a tool could be asked by");
}

static void *look(void *arg)
{
	for (int i = 0; i < 2000; i++)
		if (dlsym(library, "MPI_Bcast") != arg)
			fail("not the same in another thread");
	return NULL;
}

int main(int argc, char **argv)
{
	int (*init)(int *, char ***), (*finalize)(void), (*rank_of)(MPI_Comm, int *);
	int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
	unsigned char *data = malloc(BYTES);
	pthread_t threads[4];
	int rank;

	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (argc > 2 ? RTLD_DEEPBIND : 0));
	if (!library || !data)
		fail(dlerror());
	preloaded = getenv("LD_PRELOAD");
	look_at_others();
	init = find("MPI_Init");
	finalize = find("MPI_Finalize");
	rank_of = find("PMPI_Comm_rank");
	bcast = find("MPI_Bcast");
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, look, bcast))
			fail("no thread");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	init(NULL, NULL);
	rank_of(HANDLE(MPI_Comm, "comm_world", MPI_COMM_WORLD), &rank);
	for (int turn = 0; turn < 20; turn++) {
		memset(data, rank ? 0 : turn + 1, BYTES);
		bcast(data, BYTES, HANDLE(MPI_Datatype, "byte", MPI_BYTE), 0,
		      HANDLE(MPI_Comm, "comm_world", MPI_COMM_WORLD));
		for (int i = 0; i < BYTES; i++)
			if (data[i] != turn + 1)
				fail("wrong bytes");
	}
	look_at_others();
	finalize();
	free(data);
	return 0;
}
