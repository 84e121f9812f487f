// SPDX-License-Identifier: BSD-3-Clause
/* A program with the note of Go's linker; exits 0 when its child, which the C library knows nothing
 * of, has its static data, as Go's have to. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../heap_probe.h"

__asm__(".pushsection .note.go.buildid, \"a\", %note\n"
	".balign 4\n"
	".long 4, 5, 4\n"
	".asciz \"Go\"\n"
	".balign 4\n"
	".asciz \"test\"\n"
	".balign 4\n"
	".popsection\n");

static char array[8 << 20];

int main(void)
{
	int status;
	pid_t pid;

	CHECK(probe_arena().base);
	memset(array, 1, sizeof(array));
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid)
		_exit(array[sizeof(array) / 2] != 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	return 0;
}
