// SPDX-License-Identifier: BSD-3-Clause
#include "softdma.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define SOFTDMA "/sys/module/softdma/parameters/"

void sd_set(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "%s%s", SOFTDMA, name);
	KM_TRUE(km_write_text(path, value));
}

long long sd_count(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s%s", SOFTDMA, name);
	return km_read_number(path);
}

struct sd_setup sd_prepare(void)
{
	struct sd_setup s = {.remote = km_pages(SD_BYTES), .local = km_pages(SD_BYTES)};

	if (access(SOFTDMA, F_OK))
		km_skip("no softdma.ko for this kernel");
	sd_set("reorder", "0");
	sd_set("terminate", "1");
	sd_set("align", "0");
	sd_set("delay_ms", "0");
	sd_set("fail_every", "0");
	sd_set("hang_every", "0");
	sd_set("full_every", "0");
	sd_set("descriptors", "0");
	sd_set("block", "0");
	sd_set("resume", "1");
	KM_TRUE(km_write_text(SD_ONECOPY "dmatimeout", SD_TIMEOUT_MS));
	s.fd = kn_open();
	s.slot = kn_array(s.fd, 4096);
	s.cookie = kn_create(s.fd, s.remote, SD_BYTES, KN_RW, 0);
	return s;
}

static bool load(void)
{
	const char *directory = getenv("ONECOPY_MODULES");
	char path[4096];
	int fd;

	if (!directory)
		return false;
	snprintf(path, sizeof(path), "%s/softdma.ko", directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && !syscall(SYS_finit_module, fd, "", 0);
}

int sd_main(const struct km_case *cases, int argc, char **argv)
{
	bool loaded = load();
	int status = km_main(cases, argc, argv);

	/* Programs that come after have engines that answer, at their own pace. */
	km_write_text(SD_ONECOPY "dmatimeout", SD_TIMEOUT_MS);
	if (loaded && syscall(SYS_delete_module, "softdma", O_NONBLOCK)) {
		perror("# softdma is still in use");
		return 1;
	}
	return status;
}
