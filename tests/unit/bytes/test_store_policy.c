// SPDX-License-Identifier: BSD-3-Clause
/*
 * How long copies choose their stores: against machines that are simple enough
 * for the right choice to be known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes/store_policy.h"

#define BYTES ((uint64_t)1 << 20)

/* ns a byte times a thousand, by whether stores go past the caches. */
struct machine {
	uint32_t cost[2];
	uint32_t cold;	/* added to ordinary stores after others */
	uint32_t noise; /* per cent, at most */
	uint32_t rare;	/* every so many calls something takes twenty times as long; 0: never */
	bool last_past;
};

static struct oc_store_policy_table table;
static int failed;

static bool call(struct machine *m, uint32_t kind, uint64_t bytes)
{
	struct oc_store_turn turn;
	uint64_t cost;

	oc_store_policy_begin(&turn, &table, kind, bytes);
	cost = m->cost[turn.past] + (!turn.past && m->last_past ? m->cold : 0);
	if (m->noise)
		cost += cost * ((uint32_t)rand() % m->noise) / 100;
	if (m->rare && (uint32_t)rand() % m->rare == 0)
		cost *= 20;
	turn.bytes = bytes;
	turn.nsec = cost * bytes / 1000;
	m->last_past = turn.past;
	oc_store_policy_end(&turn);
	return turn.past;
}

/* How many of @calls go past the caches. */
static int past(struct machine *m, uint32_t kind, int calls)
{
	int n = 0;

	while (calls--)
		n += call(m, kind, BYTES);
	return n;
}

static void expect(const char *what, int found, int least, int most)
{
	if (found >= least && found <= most)
		return;
	fprintf(stderr, "%s: %d, not %d to %d\n", what, found, least, most);
	failed = 1;
}

int main(void)
{
	struct machine memory = {.cost = {140, 100}, .noise = 10};
	struct machine caches = {.cost = {40, 100}, .cold = 100, .noise = 10};
	struct machine equal = {.cost = {98, 100}};
	struct machine near = {.cost = {110, 100}};
	struct machine rough = {.cost = {40, 100}, .cold = 100, .noise = 30, .rare = 10};
	struct oc_store_turn turn;
	struct oc_store_policy_table before;

	expect("buffers in memory, first 80 calls", past(&memory, 0, 80), 77, 77);
	expect("buffers in memory, then", past(&memory, 0, 10000), 9900, 10000);
	expect("buffers in caches, first 10 calls", past(&caches, 1, 10), 3, 3);
	expect("buffers in caches, then", past(&caches, 1, 10000), 1, 100);
	expect("another size begins anew", call(&caches, 1, 16 * BYTES), 1, 1);

	table.ordinary = true;
	expect("a table that begins with the others", past(&memory, 4, 6), 3, 3);
	expect("and finds out", past(&memory, 4, 1000), 980, 1000);
	table.ordinary = false;

	past(&caches, 0, 2000);
	expect("a program that goes from memory to caches", past(&caches, 0, 1000), 0, 20);
	past(&memory, 0, 2000);
	expect("and back", past(&memory, 0, 1000), 980, 1000);

	expect("no change for two per cent", past(&equal, 2, 10000), 9900, 10000);
	past(&caches, 5, 10);
	expect("but back to what it began with", past(&near, 5, 1000), 950, 1000);
	expect("something else on the machine", past(&rough, 3, 10000), 0, 1500);

	memcpy(&before, &table, sizeof(table));
	oc_store_policy_begin(&turn, &table, 0, BYTES);
	oc_store_policy_end(&turn);
	expect("a call that stores nothing", memcmp(&before, &table, sizeof(table)) != 0, 0, 0);
	memset(&turn, 0, sizeof(turn));
	oc_store_policy_end(&turn);
	return failed;
}
