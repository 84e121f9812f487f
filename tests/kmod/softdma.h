/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel/softdma, a memcpy provider in software that fails, falls silent, finishes
 * out of order or lacks descriptors when told to: for the tests of copies by DMA.
 */
#ifndef SOFTDMA_H
#define SOFTDMA_H

#include "knem.h"

#define SD_ONECOPY    "/sys/module/onecopy/parameters/"
#define SD_TIMEOUT_MS "10000" /* the module's own */
#define SD_BYTES      (1u << 20)

struct sd_setup {
	int fd;
	volatile knem_status_t *slot;
	knem_cookie_t cookie; /* of remote, SD_BYTES */
	uint8_t *remote;
	uint8_t *local;
};

/* A context and its memory; the engine does as it should. Skips the case without softdma. */
struct sd_setup sd_prepare(void);

/* Parameters of the engine, and its counters. */
void sd_set(const char *name, const char *value);
long long sd_count(const char *name);

/*
 * km_main() with softdma, which is loaded from $ONECOPY_MODULES and unloaded at the end:
 * that only works if the module has given back every channel.
 */
int sd_main(const struct km_case *cases, int argc, char **argv);

#endif
