// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void options_refuse(const char *what, const char *detail)
{
	int rank;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		fprintf(stderr, "collbench: %s%s%s\n", what, detail ? ": " : "",
			detail ? detail : "");
	MPI_Finalize();
	exit(2);
}

/* 64, 16K, 4M, 1G */
static size_t parse_bytes(const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (*end == 'K' || *end == 'k')
		value <<= 10;
	else if (*end == 'M' || *end == 'm')
		value <<= 20;
	else if (*end == 'G' || *end == 'g')
		value <<= 30;
	if (end == text || (*end && end[1]) || (*end && !strchr("KkMmGg", *end)) || errno)
		options_refuse("not a size", text);
	return value;
}

static void parse_ops(struct options *opt, char *list)
{
	opt->nops = 0;
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		if (opt->nops == MAX_LIST)
			options_refuse("too many collectives", NULL);
		opt->ops[opt->nops] = collective_find(name);
		if (!opt->ops[opt->nops++])
			options_refuse("no such collective", name);
	}
}

static void parse_sizes(struct options *opt, char *list)
{
	opt->nsizes = 0;
	for (char *text = strtok(list, ","); text; text = strtok(NULL, ",")) {
		if (opt->nsizes == MAX_LIST)
			options_refuse("too many sizes", NULL);
		opt->sizes[opt->nsizes] = parse_bytes(text);
		if (opt->sizes[opt->nsizes] == 0 || opt->sizes[opt->nsizes] % WORD)
			options_refuse("sizes are multiples of 4 bytes", text);
		opt->nsizes++;
	}
}

static size_t default_cache(void)
{
	long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);

	return bytes > 0 ? (size_t)bytes : 32u << 20;
}

static _Noreturn void usage(void)
{
	options_refuse("usage: collbench [--collectives=LIST] [--sizes=LIST] [--warm] [--reps=N]\n"
		       "       [--seconds=S] [--cache=BYTES] [--timing=loop|call] [--slots=N]\n"
		       "       [--memory=heap|static|stack|mmap] [--beneath]",
		       NULL);
}

void options_parse(struct options *opt, int argc, char **argv)
{
	static const struct option longs[] = {
		{"collectives", required_argument, NULL, 'c'},
		{"sizes", required_argument, NULL, 's'},
		{"warm", no_argument, NULL, 'w'},
		{"reps", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 't'},
		{"cache", required_argument, NULL, 'l'},
		{"timing", required_argument, NULL, 'm'},
		{"memory", required_argument, NULL, 'k'},
		{"slots", required_argument, NULL, 'n'},
		{"beneath", no_argument, NULL, 'b'},
		{NULL, 0, NULL, 0},
	};
	static struct functions beneath;
	char sizes[] = "16K,64K,256K,1M,4M";
	int c;

	*opt = (struct options){.cache = default_cache(),
				.seconds = 0.1,
				.reps = 1,
				.ways = {&functions_linked},
				.nways = 1};
	for (size_t i = 0; collective_at(i); i++)
		opt->ops[opt->nops++] = collective_at(i);
	parse_sizes(opt, sizes);
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			parse_ops(opt, optarg);
			break;
		case 's':
			parse_sizes(opt, optarg);
			break;
		case 'w':
			opt->warm = true;
			break;
		case 'r':
			opt->reps = atoi(optarg);
			break;
		case 't':
			opt->seconds = atof(optarg);
			break;
		case 'l':
			opt->cache = parse_bytes(optarg);
			break;
		case 'm':
			opt->per_call = !strcmp(optarg, "call");
			break;
		case 'k':
			if (!memory_parse(optarg, &opt->memory))
				options_refuse("no such memory", optarg);
			break;
		case 'n':
			opt->most_slots = parse_bytes(optarg);
			break;
		case 'b':
			if (!functions_beneath(&beneath))
				options_refuse("the MPI's own library is not found", NULL);
			opt->ways[1] = &beneath;
			opt->nways = 2;
			break;
		default:
			usage();
		}
	}
	if (optind < argc || opt->reps < 1 || opt->seconds <= 0 || !opt->nops || !opt->nsizes)
		usage();
}
