// SPDX-License-Identifier: BSD-3-Clause
#include "topology.h"

#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "segment/node.h"

/* What the MPI says of this rank's neighbours: a rank or MPI_PROC_NULL for each block. */
struct lists {
	int outs;
	int ins;
	int *to;   /* [outs] */
	int *from; /* [ins] */
};

/* What goes along an edge to tell its ends of each other. */
struct edge_name {
	int rank;  /* of its sender */
	int block; /* of the sender's call */
};

static bool cart_degrees(MPI_Comm comm, int *out, int *in)
{
	int dims;

	if (pmpi()->Cartdim_get(comm, &dims))
		return false;
	*out = *in = 2 * dims;
	return true;
}

static bool graph_degrees(MPI_Comm comm, int *out, int *in)
{
	int rank;

	if (pmpi()->Comm_rank(comm, &rank) || pmpi()->Graph_neighbors_count(comm, rank, out))
		return false;
	*in = *out;
	return true;
}

static bool degrees(MPI_Comm comm, int kind, int *out, int *in)
{
	int weighted;

	if (kind == MPI_CART)
		return cart_degrees(comm, out, in);
	if (kind == MPI_GRAPH)
		return graph_degrees(comm, out, in);
	return !pmpi()->Dist_graph_neighbors_count(comm, in, out, &weighted);
}

static bool kind_of(MPI_Comm comm, int *kind)
{
	return !pmpi()->Topo_test(comm, kind) && *kind != MPI_UNDEFINED;
}

bool oc_topology_degrees(MPI_Comm comm, int *out, int *in)
{
	int kind;

	return kind_of(comm, &kind) && degrees(comm, kind, out, in);
}

static bool ask_cart(MPI_Comm comm, struct lists *lists)
{
	for (int d = 0; 2 * d < lists->outs; d++)
		if (pmpi()->Cart_shift(comm, d, 1, &lists->to[2 * d], &lists->to[2 * d + 1]))
			return false;
	for (int i = 0; i < lists->ins; i++)
		lists->from[i] = lists->to[i];
	return true;
}

static bool ask_graph(MPI_Comm comm, int rank, struct lists *lists)
{
	return !pmpi()->Graph_neighbors(comm, rank, lists->outs, lists->to) &&
	       !pmpi()->Graph_neighbors(comm, rank, lists->ins, lists->from);
}

static bool ask_dist_graph(MPI_Comm comm, struct lists *lists)
{
	int *weights = calloc((size_t)lists->outs + (size_t)lists->ins + 1, sizeof(*weights));
	bool done = weights &&
		    !pmpi()->Dist_graph_neighbors(comm, lists->ins, lists->from, weights,
						  lists->outs, lists->to, weights + lists->ins);

	free(weights);
	return done;
}

/* malloc'ed, as one: @lists->to. */
static bool ask(MPI_Comm comm, int rank, struct lists *lists)
{
	int kind;

	if (!kind_of(comm, &kind) || !degrees(comm, kind, &lists->outs, &lists->ins) ||
	    lists->outs > OC_MAX_RANKS || lists->ins > OC_MAX_RANKS)
		return false;
	lists->to = calloc((size_t)lists->outs + (size_t)lists->ins + 1, sizeof(int));
	if (!lists->to)
		return false;
	lists->from = lists->to + lists->outs;
	if (kind == MPI_CART)
		return ask_cart(comm, lists);
	if (kind == MPI_GRAPH)
		return ask_graph(comm, rank, lists);
	return ask_dist_graph(comm, lists);
}

static bool agree(MPI_Comm comm, bool mine)
{
	int here = mine, all = 0;

	return !pmpi()->Allreduce(&here, &all, 1, oc_abi.integer, oc_abi.land, comm) && all;
}

static bool edges_alloc(struct oc_edges *edges, int degree)
{
	edges->degree = degree;
	edges->rank = calloc(2 * (size_t)degree + 1, sizeof(int));
	edges->block = edges->rank ? edges->rank + degree : NULL;
	return edges->rank;
}

struct place {
	int rank;
	int order; /* among those of one rank */
	int block;
};

static int compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
				  : (x->order > y->order) - (x->order < y->order);
}

/* True if two are of one rank. */
static bool put_in_order(struct oc_edges *edges, struct place *places, int n)
{
	bool several = false;

	qsort(places, (size_t)n, sizeof(*places), compare);
	edges->n = n;
	for (int e = 0; e < n; e++) {
		edges->rank[e] = places[e].rank;
		edges->block[e] = places[e].block;
		several = several || (e && places[e].rank == places[e - 1].rank);
	}
	return several;
}

/* Of a communicator that has none here, for want of memory on some rank. */
static struct oc_topology nowhere = {.known = {true, true, true}};

static void sort_out(struct oc_topology *topology, const struct lists *lists, struct place *places,
		     int size)
{
	int n = 0;

	for (int i = 0; i < lists->outs; i++)
		if (lists->to[i] >= 0 && lists->to[i] < size)
			places[n++] = (struct place){lists->to[i], i, i};
	topology->several = put_in_order(&topology->out, places, n) || topology->several;
}

/* @names: what has come along each edge. False if that is not what the lists say. */
static bool sort_in(struct oc_topology *topology, enum oc_edge_order order,
		    const struct lists *lists, const struct edge_name *names, struct place *places,
		    int size)
{
	int n = 0;

	for (int i = 0; i < lists->ins; i++) {
		if (lists->from[i] < 0 || lists->from[i] >= size)
			continue;
		if (names[i].rank != lists->from[i])
			return false;
		places[n++] = (struct place){lists->from[i], names[i].block, i};
	}
	topology->several = put_in_order(&topology->in[order], places, n) || topology->several;
	return true;
}

/* Without the order of what comes in. NULL without memory. */
static struct oc_topology *topology_create(const struct lists *lists, struct place *places,
					   int size)
{
	struct oc_topology *topology = calloc(1, sizeof(*topology));
	bool had = topology && edges_alloc(&topology->out, lists->outs);

	for (int order = 0; order < OC_EDGE_ORDERS && had; order++)
		had = edges_alloc(&topology->in[order], lists->ins);
	if (had) {
		sort_out(topology, lists, places, size);
		return topology;
	}
	oc_topology_free(topology);
	return NULL;
}

/* What asking takes. */
struct room {
	struct edge_name *sent; /* [outs] */
	struct edge_name *got;	/* [ins] */
	struct place *places;
	int *counts;	     /* [outs] and [ins], those of ints in a name */
	int *displs;	     /* where the names are, in ints */
	MPI_Aint *bytes;     /* and in bytes */
	MPI_Datatype *types; /* of ints */
};

static bool make_room(struct room *room, const struct lists *lists)
{
	size_t most = 1 + (size_t)(lists->outs > lists->ins ? lists->outs : lists->ins);

	room->sent = calloc(most, sizeof(*room->sent));
	room->got = calloc(most, sizeof(*room->got));
	room->places = calloc(most, sizeof(*room->places));
	room->counts = calloc(most, sizeof(*room->counts));
	room->displs = calloc(most, sizeof(*room->displs));
	room->bytes = calloc(most, sizeof(*room->bytes));
	room->types = calloc(most, sizeof(MPI_Datatype));
	if (!room->sent || !room->got || !room->places || !room->counts || !room->displs ||
	    !room->bytes || !room->types)
		return false;
	for (size_t i = 0; i < most; i++) {
		room->counts[i] = 2;
		room->displs[i] = 2 * (int)i;
		room->bytes[i] = (MPI_Aint)(i * sizeof(struct edge_name));
		room->types[i] = oc_abi.integer;
	}
	return true;
}

static void free_room(struct room *room)
{
	free(room->sent);
	free(room->got);
	free(room->places);
	free(room->counts);
	free(room->displs);
	free(room->bytes);
	free(room->types);
}

/* A neighbourhood collective of the MPI's. */
static bool name_edges(const struct room *room, const struct lists *lists, enum oc_edge_order order,
		       int rank, MPI_Comm comm)
{
	MPI_Datatype type = oc_abi.integer;

	for (int i = 0; i < lists->outs; i++)
		room->sent[i] = (struct edge_name){rank, i};
	for (int i = 0; i < lists->ins; i++)
		room->got[i] = (struct edge_name){-1, -1};
	switch (order) {
	case OC_EDGES_ALLTOALL:
		return !pmpi()->Neighbor_alltoall(room->sent, 2, type, room->got, 2, type, comm);
	case OC_EDGES_ALLTOALLV:
		return !pmpi()->Neighbor_alltoallv(room->sent, room->counts, room->displs, type,
						   room->got, room->counts, room->displs, type,
						   comm);
	default:
		return !pmpi()->Neighbor_alltoallw(room->sent, room->counts, room->bytes,
						   room->types, room->got, room->counts,
						   room->bytes, room->types, comm);
	}
}

static bool find_order(struct oc_topology *topology, enum oc_edge_order order,
		       const struct room *room, const struct lists *lists, int rank, int size,
		       MPI_Comm comm)
{
	return name_edges(room, lists, order, rank, comm) &&
	       sort_in(topology, order, lists, room->got, room->places, size);
}

static void copy_order(struct oc_edges *to, const struct oc_edges *from)
{
	to->n = from->n;
	for (int e = 0; e < from->n; e++) {
		to->rank[e] = from->rank[e];
		to->block[e] = from->block[e];
	}
}

/* Lowers what is known of the ranks at this rank's edges, and of itself, to the least of it. */
static void lower(int *least, const struct oc_edges *edges, int rank)
{
	for (int e = 0; e < edges->n; e++)
		if (least[edges->rank[e]] < least[rank])
			least[rank] = least[edges->rank[e]];
	for (int e = 0; e < edges->n; e++)
		if (least[edges->rank[e]] > least[rank])
			least[edges->rank[e]] = least[rank];
}

/* Collective. Each rank comes to know the least of those that edges lead to from each. */
static bool is_connected(const struct oc_edges *out, const struct oc_edges *in, int rank, int size,
			 MPI_Comm comm)
{
	int least[OC_MAX_RANKS], before[OC_MAX_RANKS];
	size_t bytes = (size_t)size * sizeof(*least);

	for (int i = 0; i < size; i++)
		least[i] = i;
	do {
		memcpy(before, least, bytes);
		lower(least, out, rank);
		lower(least, in, rank);
		if (pmpi()->Allreduce(MPI_IN_PLACE, least, size, oc_abi.integer,
				      oc_abi_op_handle(OC_MIN), comm))
			return false;
		for (int i = 0; i < size; i++)
			least[i] = least[least[i]];
	} while (memcmp(before, least, bytes) != 0);
	for (int i = 0; i < size; i++)
		if (least[i])
			return false;
	return true;
}

/* Collective. Where no rank has several edges to another each order is the same. */
static void learn(struct oc_topology *topology, enum oc_edge_order order, bool found, int rank,
		  int size, MPI_Comm comm)
{
	bool good = agree(comm, found);
	bool one = good && agree(comm, !topology->several);

	/* The same whatever was asked for. */
	if (good)
		topology->connected =
			is_connected(&topology->out, &topology->in[order], rank, size, comm);
	for (int o = 0; o < OC_EDGE_ORDERS; o++) {
		if (o != (int)order && !one)
			continue;
		if (o != (int)order)
			copy_order(&topology->in[o], &topology->in[order]);
		topology->known[o] = true;
		topology->good[o] = good;
	}
}

/* No more is found out; what is known stays. */
static struct oc_topology *give_up(struct oc_topology *topology)
{
	for (int o = 0; o < OC_EDGE_ORDERS && topology; o++)
		topology->known[o] = true;
	return topology ? topology : &nowhere;
}

struct oc_topology *oc_topology_ask(MPI_Comm comm, int rank, int size, struct oc_topology *known,
				    enum oc_edge_order order)
{
	struct oc_topology *topology = known;
	struct lists lists = {0};
	struct room room = {0};
	bool here = ask(comm, rank, &lists) && make_room(&room, &lists);

	if (here && !topology)
		topology = topology_create(&lists, room.places, size);
	if (agree(comm, here && topology))
		learn(topology, order, find_order(topology, order, &room, &lists, rank, size, comm),
		      rank, size, comm);
	else
		topology = give_up(topology);
	free_room(&room);
	free(lists.to);
	return topology;
}

void oc_topology_free(struct oc_topology *topology)
{
	if (!topology || topology == &nowhere)
		return;
	free(topology->out.rank);
	for (int order = 0; order < OC_EDGE_ORDERS; order++)
		free(topology->in[order].rank);
	free(topology);
}
