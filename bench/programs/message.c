// SPDX-License-Identifier: BSD-3-Clause
#include "message.h"

int message_partner(const struct call *call)
{
	return call->rank ^ 1;
}

int message_left(const struct call *call)
{
	return (call->rank + call->nranks - 1) % call->nranks;
}

int message_right(const struct call *call)
{
	return (call->rank + 1) % call->nranks;
}

static void send_to(const struct call *call, int peer)
{
	call->mpi->Send(call->send, (int)call->words, MPI_UINT32_T, peer, 0, MPI_COMM_WORLD);
}

static void receive_from(const struct call *call, int peer)
{
	call->mpi->Recv(call->recv, (int)call->words, MPI_UINT32_T, peer, 0, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
}

static void run_echo(const struct call *call)
{
	int peer = message_partner(call);

	if (call->rank & 1) {
		receive_from(call, peer);
		send_to(call, peer);
	} else {
		send_to(call, peer);
		receive_from(call, peer);
	}
}

static void run_pingpong(const struct call *call)
{
	if (call->rank < 2)
		run_echo(call);
}

/* All pairs at once. */
static void run_multipair(const struct call *call)
{
	if (message_partner(call) < call->nranks)
		run_echo(call);
}

/* Both ways at once, in all pairs. */
static void run_bidirectional(const struct call *call)
{
	int peer = message_partner(call);
	MPI_Request requests[2];

	if (peer >= call->nranks)
		return;
	MPI_Irecv(call->recv, (int)call->words, MPI_UINT32_T, peer, 0, MPI_COMM_WORLD,
		  &requests[0]);
	MPI_Isend(call->send, (int)call->words, MPI_UINT32_T, peer, 0, MPI_COMM_WORLD,
		  &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void run_sendrecv(const struct call *call)
{
	MPI_Sendrecv(call->send, (int)call->words, MPI_UINT32_T, message_right(call), 0, call->recv,
		     (int)call->words, MPI_UINT32_T, message_left(call), 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

/* With both neighbours; those of two ranks are one. */
static void run_exchange(const struct call *call)
{
	int left = message_left(call), right = message_right(call);
	MPI_Request requests[4];

	MPI_Irecv(call->recv, (int)call->words, MPI_UINT32_T, left, 0, MPI_COMM_WORLD,
		  &requests[0]);
	MPI_Irecv(call->recv + call->words, (int)call->words, MPI_UINT32_T, right, 1,
		  MPI_COMM_WORLD, &requests[1]);
	MPI_Isend(call->send, (int)call->words, MPI_UINT32_T, right, 0, MPI_COMM_WORLD,
		  &requests[2]);
	MPI_Isend(call->send, (int)call->words, MPI_UINT32_T, left, 1, MPI_COMM_WORLD,
		  &requests[3]);
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void run_put(const struct call *call)
{
	int right = message_right(call);

	MPI_Put(call->send, (int)call->words, MPI_UINT32_T, right, call->recv_at, (int)call->words,
		MPI_UINT32_T, call->recv_window);
	MPI_Win_flush(right, call->recv_window);
}

static void run_get(const struct call *call)
{
	int right = message_right(call);

	MPI_Get(call->recv, (int)call->words, MPI_UINT32_T, right, call->send_at, (int)call->words,
		MPI_UINT32_T, call->send_window);
	MPI_Win_flush(right, call->send_window);
}

#define ONE_EACH                                                                                   \
	.send_root = AMOUNT_ONE, .send_other = AMOUNT_ONE, .recv_root = AMOUNT_ONE,                \
	.recv_other = AMOUNT_ONE

static const struct collective table[] = {
	{
		.name = "pingpong",
		ONE_EACH,
		.origin = FROM_PARTNER,
		.pair = true,
		.echo = true,
		.run = run_pingpong,
	},
	{
		.name = "multipair",
		ONE_EACH,
		.origin = FROM_PARTNER,
		.echo = true,
		.run = run_multipair,
	},
	{
		.name = "bidirectional",
		ONE_EACH,
		.origin = FROM_PARTNER,
		.run = run_bidirectional,
	},
	{
		.name = "sendrecv",
		ONE_EACH,
		.origin = FROM_LEFT,
		.run = run_sendrecv,
	},
	{
		.name = "exchange",
		.send_root = AMOUNT_ONE,
		.send_other = AMOUNT_ONE,
		.recv_root = AMOUNT_BOTH,
		.recv_other = AMOUNT_BOTH,
		.origin = FROM_BOTH,
		.run = run_exchange,
	},
	{
		.name = "put",
		ONE_EACH,
		.origin = FROM_LEFT,
		.window = true,
		.run = run_put,
	},
	{
		.name = "get",
		ONE_EACH,
		.origin = FROM_RIGHT,
		.window = true,
		.run = run_get,
	},
};

const struct collective *message_at(size_t i)
{
	return i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}
