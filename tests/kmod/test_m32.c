// SPDX-License-Identifier: BSD-3-Clause
/*
 * The other programs again, as 32-bit ones: what compilers and libraries of that width make
 * of the structs, of lengths, offsets and addresses. test_compat has the calls that
 * none of them makes.
 */
#include "kmod.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

/* Of the program that lies beside this one, line by line. */
static void repeat_output(int from)
{
	char line[512];
	FILE *f = fdopen(from, "r");

	KM_TRUE(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		km_note("%s", line);
	}
	fclose(f);
}

static void run(const char *name)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	int way[2], status;
	pid_t pid;

	if (km_uml())
		km_skip("User-Mode Linux has no 32-bit programs");
	KM_TRUE(len > 0);
	path[len] = 0;
	sprintf(strrchr(path, '/'), "/m32_%s", name);
	if (access(path, X_OK))
		km_skip("built without -m32: libc6-dev-i386 was missing");
	KM_OK(pipe(way));
	pid = km_fork();
	if (pid == 0) {
		dup2(way[1], STDOUT_FILENO);
		dup2(way[1], STDERR_FILENO);
		close(way[0]);
		close(way[1]);
		unsetenv("KMOD_ONLY"); /* chose among our names */
		execl(path, path, (char *)NULL);
		_exit(errno == ENOEXEC ? KM_SKIPPED : 127);
	}
	KM_OK(close(way[1]));
	repeat_output(way[0]);
	KM_EQ(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == KM_SKIPPED)
		km_skip("this kernel has no 32-bit programs, or not what they test");
	KM_EQ(status, 0);
}

static void dev_abi(void)
{
	run("dev_abi");
}

static void dev_async(void)
{
	run("dev_async");
}

static void dev_copy(void)
{
	run("dev_copy");
}

static void dev_map(void)
{
	run("dev_map");
}

static void dev_track(void)
{
	run("dev_track");
}

static void knem_copy(void)
{
	run("knem_copy");
}

static void knem_file(void)
{
	run("knem_file");
}

static void knem_layout(void)
{
	run("knem_layout");
}

static void knem_notify(void)
{
	run("knem_notify");
}

static void knem_region(void)
{
	run("knem_region");
}

static void knem_suite(void)
{
	run("knem_suite");
}

int main(int argc, char **argv)
{
	static const struct km_case cases[] = {
		{.name = "dev_abi", .run = dev_abi, .limit = 120},
		{.name = "dev_async", .run = dev_async, .limit = 120},
		{.name = "dev_copy", .run = dev_copy, .limit = 120},
		{.name = "dev_map", .run = dev_map, .limit = 120},
		{.name = "dev_track", .run = dev_track, .limit = 120},
		{.name = "knem_copy", .run = knem_copy, .limit = 120},
		{.name = "knem_file", .run = knem_file, .limit = 120},
		{.name = "knem_layout", .run = knem_layout, .limit = 120},
		{.name = "knem_notify", .run = knem_notify, .limit = 120},
		{.name = "knem_region", .run = knem_region, .limit = 120},
		{.name = "knem_suite", .run = knem_suite, .limit = 120},
		{0},
	};

	return km_main(cases, argc, argv);
}
