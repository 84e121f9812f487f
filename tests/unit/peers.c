// SPDX-License-Identifier: BSD-3-Clause
#include "peers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "access/window.h"

bool peers_create(struct peers *peers, uint32_t nranks, uint64_t arena_size)
{
	struct oc_node *node = &peers->node;
	bool good = true;

	*peers = (struct peers){.node = {.nranks = nranks, .pid = (uint32_t)getpid()}};
	node->ranks = aligned_alloc(OC_CACHELINE, nranks * sizeof(*node->ranks));
	node->peers = calloc(nranks, sizeof(*node->peers));
	if (!node->ranks || !node->peers)
		return false;
	memset(node->ranks, 0, nranks * sizeof(*node->ranks));
	for (int i = 0; i < PEERS_FILES; i++) {
		peers->fd[i] = memfd_create("peer-arena", MFD_CLOEXEC);
		good = good && peers->fd[i] >= 0 && !ftruncate(peers->fd[i], (off_t)arena_size);
	}
	for (uint32_t i = 0; i < nranks; i++)
		node->ranks[i].arena_size = arena_size;
	good = good && !oc_windows_create(node);
	for (uint32_t i = 1; good && i < nranks; i++)
		good = !oc_window_open(node, i, peers->fd[i % PEERS_FILES]);
	return good;
}

void peers_destroy(struct peers *peers)
{
	oc_windows_destroy(&peers->node);
	for (int i = 0; i < PEERS_FILES; i++)
		close(peers->fd[i]);
	free(peers->node.ranks);
	free(peers->node.peers);
}

uint64_t peers_mapped(bool *apart)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	uint64_t first, end, sum = 0;
	bool ours = false;
	char line[512];

	*apart = smaps;
	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2) {
			ours = strstr(line, "peer-arena");
			sum += ours ? end - first : 0;
		} else if (ours && !strncmp(line, "VmFlags:", 8)) {
			*apart = *apart && strstr(line, " dd") && strstr(line, " dc");
		}
	}
	if (smaps)
		fclose(smaps);
	return sum;
}

uint64_t peers_status(const char *name)
{
	FILE *status = fopen("/proc/self/status", "re");
	uint64_t value = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, 10) << 10;
	if (status)
		fclose(status);
	return value;
}
