/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of operations (lib/exec/board.h) as a model for Spin: the lines of the boards,
 * posted and waited for; when a line may be written again; failure, and that nobody returns
 * from it while a peer is at its buffers; death at any instant.
 *
 * Each rank goes through operations 1 to OPS. Of four, the first and the last are exchanges, where
 * everybody reads everybody's buffer in any order and tells each by an event that it has, but that
 * the last of three ranks skips the first; between them
 * are eager broadcasts, whose root leaves what it sends in the ring and waits for nobody. FLIGHT
 * of them may be under way at once on a rank, go on in any order and end in any order: 1 is what
 * blocking collectives do, more is what the design allows for.
 *
 * Checked: who touches memory touches that of the operation it means, while its owner has not
 * returned from that; no line, and no place of the ring, is written under a reader; every
 * living rank ends every operation, none with an error if nobody failed or died.
 *
 * Words are visible at once, which is what the fences of oc_line_publish() are for.
 *
 * Errors to plant: BUG_REUSE a line is written again one operation early; BUG_RETIRED an
 * operation that is skipped counts as retired though an earlier one of its line is under way;
 * BUG_STALE a line is written again with the events of its last operation; BUG_QUIT who failed
 * returns at once; BUG_FENCE words are visible late; BUG_ISSUE who begins
 * waits for its line, and does nothing else meanwhile.
 */

#ifndef N
#define N 2 /* ranks, 3 at most */
#endif
#ifndef OPS
#define OPS 4 /* 5 at most */
#endif
#ifndef LINES
#define LINES 2
#endif
#ifndef FLIGHT
#define FLIGHT 1
#endif
#ifndef FAILURES
#define FAILURES 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif

/* Words. */
#define READY  1
#define FAILED 2

/* Where a rank is in an operation. */
#define AHEAD  0
#define BEGUN  1 /* its line is written */
#define POSTED 2 /* READY */
#define COPIED 3 /* all that it reads */
#define QUIT   4 /* FAILED, and waits for those at its buffers */
#define ENDED  5

#define IS_EAGER(s) ((s) % 4 == 2 || (s) % 4 == 3)
#define SKIPS(r, s) (N > 2 && (s) % 4 == 1 && (r) == N - 1)
/* Whether @r reads from @p. */
#define READS(r, p, s) \
	((r) != (p) && !SKIPS(r, s) && !SKIPS(p, s) && (!IS_EAGER(s) || (p) == 0))

#define AT(r, s)   ((r) * (OPS + 1) + (s))
#define LINE(r, s) ((r) * LINES + (s) % LINES)

/* The boards: a word for each line, the events beside it, what the rest of it was written for, and
 * the ring's place. */
byte seq[N * LINES], word[N * LINES], event[N * LINES], line[N * LINES];
byte retired[N * LINES];

/* What is true. */
bool dead[N];
bool open[N * (OPS + 1)]; /* the buffer is the operation's; an eager one's is in the ring */
byte touching[N];	  /* AT() of what a rank is at, or 0 */
byte failures = FAILURES, deaths = DEATHS;

#define IS_READY(p, s) \
	(seq[LINE(p, s)] > (s) || (seq[LINE(p, s)] == (s) && word[LINE(p, s)] >= READY))
#define HAS_FAILED(p, s) (seq[LINE(p, s)] == (s) && word[LINE(p, s)] == FAILED)
/* Whether @p has told @r that it has read its buffer. */
#define HAS_TOLD(p, r, s) \
	(IS_READY(p, s) && (seq[LINE(p, s)] > (s) || HAS_FAILED(p, s) || event[LINE(p, s)] >> (r) & 1))
#define IS_IN(p, s) \
	(!dead[p] && seq[LINE(p, s)] == (s) && word[LINE(p, s)] == READY && \
	 retired[LINE(p, s)] < (s))
#define IS_SHOWN(p, s) \
	(line[LINE(p, s)] == (s) && (IS_EAGER(s) || open[AT(p, s)]))

/* For each rank, and for all of them. */
#if N == 2
#define EACH_RANK(option, s) option(0, s) option(1, s)
#define ALL(holds, s)	     (holds(0, s) && holds(1, s))
#define ANY(holds, s)	     (holds(0, s) || holds(1, s))
#else
#define EACH_RANK(option, s) option(0, s) option(1, s) option(2, s)
#define ALL(holds, s)	     (holds(0, s) && holds(1, s) && holds(2, s))
#define ANY(holds, s)	     (holds(0, s) || holds(1, s) || holds(2, s))
#endif
#if OPS == 3
#define EACH_OP(option) option(1) option(2) option(3)
#elif OPS == 4
#define EACH_OP(option) option(1) option(2) option(3) option(4)
#else
#define EACH_OP(option) option(1) option(2) option(3) option(4) option(5)
#endif

#ifdef BUG_FENCE
byte late_line[N], late_seq[N], late_word[N]; /* a word on its way */
#define POST(s, what) \
	if \
	:: late_seq[me] -> FLUSH(me) \
	:: else \
	fi; \
	late_line[me] = LINE(me, s); \
	late_word[me] = what; \
	late_seq[me] = s
#define FLUSH(r) \
	seq[late_line[r]] = late_seq[r]; \
	word[late_line[r]] = late_word[r]; \
	late_seq[r] = 0
#else
#define POST(s, what) \
	seq[LINE(me, s)] = s; \
	word[LINE(me, s)] = what
#endif

#define TELL(p, s) event[LINE(me, s)] = event[LINE(me, s)] | 1 << p

/* A line is free when every peer has retired the operation it was last used for, and its owner too. */
#ifdef BUG_REUSE
#define IS_OVER(p, s) (dead[p] || line[LINE(me, s)] <= retired[LINE(p, s)] + LINES)
#else
#define IS_OVER(p, s) (dead[p] || line[LINE(me, s)] <= retired[LINE(p, s)])
#endif
#define IS_FREE(s) ALL(IS_OVER, s)

/* What a rank may have to wait for, in the order of a plan. */
#define HAS_GOT(p, s)	 (!READS(me, p, s) || got[s] >> p & 1)
#define HAS_LEFT(p, s)	 (!READS(p, me, s) || IS_EAGER(s) || HAS_TOLD(p, me, s))
#define IS_DONE(p, s)	 (HAS_LEFT(p, s) && !(READS(p, me, s) && HAS_FAILED(p, s)))
#define WAITS_FOR(p, s)	 (at[s] == POSTED -> !HAS_GOT(p, s) : !HAS_LEFT(p, s))
#define IS_GONE(p, s)	 ((p) != me && dead[p] && WAITS_FOR(p, s))
#define HAS_QUIT(p, s)	 ((p) != me && HAS_FAILED(p, s))
#define IS_LOST(s)	 (ANY(IS_GONE, s) || ANY(HAS_QUIT, s))
#ifdef BUG_QUIT
#define IS_OUT(p, s) true
#else
#define IS_OUT(p, s) ((p) == me || !IS_IN(p, s))
#endif

#define IS_APART(p, s) (dead[p] || IS_EAGER(s) || touching[p] != AT(me, s))
#define WAS_READ(p, s) (!dead[p] && touching[p] && line[LINE(me, s)] && touching[p] == AT(me, line[LINE(me, s)]))

/* What of the line is over: all that was issued, but what is under way and what came after that. */
#ifdef BUG_RETIRED
#define RETIRE(s) retired[LINE(me, s)] = (s > retired[LINE(me, s)] -> s : retired[LINE(me, s)])
#else
#define RETIRE(s) \
	do \
	:: retired[LINE(me, s)] == 0 && FIRST(s) < next && at[FIRST(s)] == ENDED -> \
		retired[LINE(me, s)] = FIRST(s) \
	:: retired[LINE(me, s)] > 0 && retired[LINE(me, s)] + LINES < next && \
	   at[retired[LINE(me, s)] + LINES] == ENDED -> \
		retired[LINE(me, s)] = retired[LINE(me, s)] + LINES \
	:: else -> break \
	od
#endif
#define FIRST(s) ((s) % LINES == 0 -> LINES : (s) % LINES)

#define END(s) \
	assert(ALL(IS_APART, s)); \
	open[AT(me, s)] = false; \
	at[s] = ENDED; \
	flying--; \
	RETIRE(s)

#ifdef BUG_STALE
#define CLEAR(s)
#else
#define CLEAR(s) event[LINE(me, s)] = 0;
#endif

#define MAY_BEGIN(s) (next == s && flying < FLIGHT)

#ifdef BUG_ISSUE
#define AWAIT_LINE(s) \
	:: MAY_BEGIN(s) && !SKIPS(me, s) && !IS_FREE(s) -> IS_FREE(s)
#else
#define AWAIT_LINE(s)
#endif

#define BEGIN(s) \
	AWAIT_LINE(s) \
	:: atomic { MAY_BEGIN(s) && SKIPS(me, s) -> \
		next++; \
		flying++; \
		END(s) } \
	:: atomic { MAY_BEGIN(s) && !SKIPS(me, s) && IS_FREE(s) -> \
		assert(!ANY(WAS_READ, s)); \
		line[LINE(me, s)] = s; \
		CLEAR(s) \
		open[AT(me, s)] = true; \
		next++; \
		flying++; \
		at[s] = BEGUN }

#define DIE \
	:: atomic { deaths > 0 -> \
		deaths--; \
		dead[me] = true; \
		touching[me] = 0; \
		goto end }

#define READ(p, s) \
	:: at[s] == POSTED && !HAS_GOT(p, s) && IS_READY(p, s) && !HAS_FAILED(p, s) -> \
		atomic { \
			assert(dead[p] || IS_SHOWN(p, s)); \
			touching[me] = AT(p, s) \
		} \
		if \
		:: atomic { true -> \
			assert(dead[p] || IS_SHOWN(p, s)); \
			touching[me] = 0; \
			got[s] = got[s] | 1 << p; \
			TELL(p, s) } \
		DIE \
		fi

#define STEPS(s) \
	BEGIN(s) \
	:: atomic { at[s] == BEGUN -> POST(s, READY); at[s] = POSTED } \
	EACH_RANK(READ, s) \
	:: atomic { at[s] == POSTED && ALL(HAS_GOT, s) -> at[s] = COPIED } \
	:: atomic { at[s] == COPIED && ALL(IS_DONE, s) -> END(s) } \
	:: atomic { at[s] >= BEGUN && at[s] <= COPIED && failures > 0 -> \
		failures--; \
		POST(s, FAILED); \
		at[s] = QUIT } \
	:: atomic { (at[s] == POSTED || at[s] == COPIED) && IS_LOST(s) -> \
		assert(FAILURES + DEATHS > 0); \
		POST(s, FAILED); \
		at[s] = QUIT } \
	:: atomic { at[s] == QUIT && ALL(IS_OUT, s) -> END(s) }

proctype rank(byte me)
{
	byte at[OPS + 1], got[OPS + 1];
	byte next = 1, flying = 0;

	do
	EACH_OP(STEPS)
	DIE
	:: next > OPS && flying == 0 -> break
	od;
end:
	skip
}

#ifdef BUG_FENCE
proctype memory()
{
end:
	do
	:: atomic { late_seq[0] -> FLUSH(0) }
	:: atomic { late_seq[1] -> FLUSH(1) }
#if N > 2
	:: atomic { late_seq[2] -> FLUSH(2) }
#endif
	od
}
#endif

init
{
	atomic {
		run rank(0);
		run rank(1);
#if N > 2
		run rank(2);
#endif
#ifdef BUG_FENCE
		run memory();
#endif
	}
}
