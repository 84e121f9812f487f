// SPDX-License-Identifier: BSD-3-Clause
/* Built with ThreadSanitizer, whose books are right if it says nothing: two threads, the first one
 * among them, free what the other has made. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../heap_probe.h"

enum { ROUNDS = 100 };

static struct {
	pthread_mutex_t lock;
	int turns;
	char *blocks[2];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Waits under the lock alone, the way on which one hears of what the other did. */
static int wait_for_turn(int self)
{
	int turns = 0;

	for (;;) {
		pthread_mutex_lock(&shared.lock);
		turns = shared.turns;
		if (turns % 2 == self)
			return turns;
		pthread_mutex_unlock(&shared.lock);
		sched_yield();
	}
}

static void *hand_on(void *arg)
{
	static const size_t sizes[] = {300, 40000};
	int self = *(const int *)arg;

	for (int i = 0; i < ROUNDS; i++) {
		int which = wait_for_turn(self) / 2 % 2;

		free(shared.blocks[which]);
		shared.blocks[which] = malloc(sizes[which]);
		memset(shared.blocks[which], i, sizes[which]);
		shared.turns++;
		pthread_mutex_unlock(&shared.lock);
	}
	return NULL;
}

int main(void)
{
	static int first = 0, second = 1;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, hand_on, &second));
	hand_on(&first);
	CHECK(!pthread_join(thread, NULL));
	return 0;
}
