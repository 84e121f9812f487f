/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ABI_MPICH_MPI_H
#define OC_ABI_MPICH_MPI_H

/*
 * What mpi/ needs of the binary interface that MPICH (3.1 and later), Intel MPI, MVAPICH and others
 * have agreed on: handles are numbers, those of predefined objects constants. Libraries:
 * libmpi.so.12.
 */
typedef long MPI_Aint;
typedef long long MPI_Offset;
typedef long long MPI_Count;

typedef struct MPI_Status {
	int count_lo;
	int count_hi_and_cancelled;
	int MPI_SOURCE;
	int MPI_TAG;
	int MPI_ERROR;
} MPI_Status;

typedef int MPI_Comm;
#define MPI_COMM_NULL  ((MPI_Comm)0x4000000)
#define MPI_COMM_WORLD ((MPI_Comm)0x44000000)
#define MPI_COMM_SELF  ((MPI_Comm)0x44000001)

typedef int MPI_Group;
#define MPI_GROUP_NULL	((MPI_Group)0x8000000)
#define MPI_GROUP_EMPTY ((MPI_Group)0x48000000)

typedef int MPI_Win;
#define MPI_WIN_NULL ((MPI_Win)0x20000000)

typedef int MPI_Session;
#define MPI_SESSION_NULL ((MPI_Session)0x38000000)

typedef int MPI_Message;
#define MPI_MESSAGE_NULL    ((MPI_Message)0x2c000000)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)0x6c000000)

typedef int MPI_Info;
#define MPI_INFO_NULL ((MPI_Info)0x1c000000)
#define MPI_INFO_ENV  ((MPI_Info)0x5c000001)

typedef int MPI_Errhandler;
#define MPI_ERRHANDLER_NULL  ((MPI_Errhandler)0x14000000)
#define MPI_ERRORS_ARE_FATAL ((MPI_Errhandler)0x54000000)
#define MPI_ERRORS_RETURN    ((MPI_Errhandler)0x54000001)
#define MPI_ERRORS_ABORT     ((MPI_Errhandler)0x54000003)

typedef int MPI_Request;
#define MPI_REQUEST_NULL ((MPI_Request)0x2c000000)

typedef int MPI_Op;
#define MPI_OP_NULL ((MPI_Op)0x18000000)
#define MPI_MAX	    ((MPI_Op)0x58000001)
#define MPI_MIN	    ((MPI_Op)0x58000002)
#define MPI_SUM	    ((MPI_Op)0x58000003)
#define MPI_PROD    ((MPI_Op)0x58000004)
#define MPI_LAND    ((MPI_Op)0x58000005)
#define MPI_BAND    ((MPI_Op)0x58000006)
#define MPI_LOR	    ((MPI_Op)0x58000007)
#define MPI_BOR	    ((MPI_Op)0x58000008)
#define MPI_LXOR    ((MPI_Op)0x58000009)
#define MPI_BXOR    ((MPI_Op)0x5800000a)
#define MPI_MAXLOC  ((MPI_Op)0x5800000c)
#define MPI_MINLOC  ((MPI_Op)0x5800000b)
#define MPI_REPLACE ((MPI_Op)0x5800000d)
#define MPI_NO_OP   ((MPI_Op)0x5800000e)

typedef int MPI_Datatype;
#define MPI_DATATYPE_NULL	    ((MPI_Datatype)0xc000000)
#define MPI_PACKED		    ((MPI_Datatype)0x4c00010f)
#define MPI_BYTE		    ((MPI_Datatype)0x4c00010d)
#define MPI_CHAR		    ((MPI_Datatype)0x4c000101)
#define MPI_SIGNED_CHAR		    ((MPI_Datatype)0x4c000118)
#define MPI_UNSIGNED_CHAR	    ((MPI_Datatype)0x4c000102)
#define MPI_WCHAR		    ((MPI_Datatype)0x4c00040e)
#define MPI_SHORT		    ((MPI_Datatype)0x4c000203)
#define MPI_UNSIGNED_SHORT	    ((MPI_Datatype)0x4c000204)
#define MPI_INT			    ((MPI_Datatype)0x4c000405)
#define MPI_UNSIGNED		    ((MPI_Datatype)0x4c000406)
#define MPI_LONG		    ((MPI_Datatype)0x4c000807)
#define MPI_UNSIGNED_LONG	    ((MPI_Datatype)0x4c000808)
#define MPI_LONG_LONG		    ((MPI_Datatype)0x4c000809)
#define MPI_UNSIGNED_LONG_LONG	    ((MPI_Datatype)0x4c000819)
#define MPI_FLOAT		    ((MPI_Datatype)0x4c00040a)
#define MPI_DOUBLE		    ((MPI_Datatype)0x4c00080b)
#define MPI_LONG_DOUBLE		    ((MPI_Datatype)0x4c00100c)
#define MPI_C_BOOL		    ((MPI_Datatype)0x4c00013f)
#define MPI_C_FLOAT_COMPLEX	    ((MPI_Datatype)0x4c000840)
#define MPI_C_DOUBLE_COMPLEX	    ((MPI_Datatype)0x4c001041)
#define MPI_C_LONG_DOUBLE_COMPLEX   ((MPI_Datatype)0x4c002042)
#define MPI_INT8_T		    ((MPI_Datatype)0x4c000137)
#define MPI_INT16_T		    ((MPI_Datatype)0x4c000238)
#define MPI_INT32_T		    ((MPI_Datatype)0x4c000439)
#define MPI_INT64_T		    ((MPI_Datatype)0x4c00083a)
#define MPI_UINT8_T		    ((MPI_Datatype)0x4c00013b)
#define MPI_UINT16_T		    ((MPI_Datatype)0x4c00023c)
#define MPI_UINT32_T		    ((MPI_Datatype)0x4c00043d)
#define MPI_UINT64_T		    ((MPI_Datatype)0x4c00083e)
#define MPI_AINT		    ((MPI_Datatype)0x4c000843)
#define MPI_COUNT		    ((MPI_Datatype)0x4c000845)
#define MPI_OFFSET		    ((MPI_Datatype)0x4c000844)
#define MPI_FLOAT_INT		    ((MPI_Datatype)0x8c000000)
#define MPI_DOUBLE_INT		    ((MPI_Datatype)0x8c000001)
#define MPI_LONG_INT		    ((MPI_Datatype)0x8c000002)
#define MPI_SHORT_INT		    ((MPI_Datatype)0x8c000003)
#define MPI_2INT		    ((MPI_Datatype)0x4c000816)
#define MPI_LONG_DOUBLE_INT	    ((MPI_Datatype)0x8c000004)
#define MPI_CXX_BOOL		    ((MPI_Datatype)0x4c000133)
#define MPI_CXX_FLOAT_COMPLEX	    ((MPI_Datatype)0x4c000834)
#define MPI_CXX_DOUBLE_COMPLEX	    ((MPI_Datatype)0x4c001035)
#define MPI_CXX_LONG_DOUBLE_COMPLEX ((MPI_Datatype)0x4c002036)
#define MPI_CHARACTER		    ((MPI_Datatype)0x4c00011a)
#define MPI_LOGICAL		    ((MPI_Datatype)0x4c00041d)
#define MPI_INTEGER		    ((MPI_Datatype)0x4c00041b)
#define MPI_REAL		    ((MPI_Datatype)0x4c00041c)
#define MPI_DOUBLE_PRECISION	    ((MPI_Datatype)0x4c00081f)
#define MPI_COMPLEX		    ((MPI_Datatype)0x4c00081e)
#define MPI_DOUBLE_COMPLEX	    ((MPI_Datatype)0x4c001022)
#define MPI_2INTEGER		    ((MPI_Datatype)0x4c000820)
#define MPI_2REAL		    ((MPI_Datatype)0x4c000821)
#define MPI_2DOUBLE_PRECISION	    ((MPI_Datatype)0x4c001023)
#define MPI_INTEGER1		    ((MPI_Datatype)0x4c00012d)
#define MPI_INTEGER2		    ((MPI_Datatype)0x4c00022f)
#define MPI_INTEGER4		    ((MPI_Datatype)0x4c000430)
#define MPI_INTEGER8		    ((MPI_Datatype)0x4c000831)
#define MPI_REAL4		    ((MPI_Datatype)0x4c000427)
#define MPI_REAL8		    ((MPI_Datatype)0x4c000829)
#define MPI_REAL16		    ((MPI_Datatype)0x4c00102b)
#define MPI_COMPLEX8		    ((MPI_Datatype)0x4c000828)
#define MPI_COMPLEX16		    ((MPI_Datatype)0x4c00102a)
#define MPI_COMPLEX32		    ((MPI_Datatype)0x4c00202c)

/* Classes of errors. */
#define MPI_SUCCESS		      0
#define MPI_ERR_BUFFER		      1
#define MPI_ERR_COUNT		      2
#define MPI_ERR_TYPE		      3
#define MPI_ERR_TAG		      4
#define MPI_ERR_COMM		      5
#define MPI_ERR_RANK		      6
#define MPI_ERR_REQUEST		      19
#define MPI_ERR_ROOT		      7
#define MPI_ERR_GROUP		      8
#define MPI_ERR_OP		      9
#define MPI_ERR_TOPOLOGY	      10
#define MPI_ERR_DIMS		      11
#define MPI_ERR_ARG		      12
#define MPI_ERR_UNKNOWN		      13
#define MPI_ERR_TRUNCATE	      14
#define MPI_ERR_OTHER		      15
#define MPI_ERR_INTERN		      16
#define MPI_ERR_PENDING		      18
#define MPI_ERR_IN_STATUS	      17
#define MPI_ERR_NO_MEM		      34
#define MPI_ERR_KEYVAL		      48
#define MPI_ERR_UNSUPPORTED_OPERATION 44
#define MPI_ERR_LASTCODE	      0x3fffffff

#define MPI_ANY_SOURCE	   (-2)
#define MPI_ANY_TAG	   (-1)
#define MPI_PROC_NULL	   (-1)
#define MPI_ROOT	   (-3)
#define MPI_UNDEFINED	   (-32766)
#define MPI_KEYVAL_INVALID 0x24000000

#define MPI_THREAD_SINGLE     0
#define MPI_THREAD_FUNNELED   1
#define MPI_THREAD_SERIALIZED 2
#define MPI_THREAD_MULTIPLE   3

#define MPI_COMBINER_NAMED	    1
#define MPI_COMBINER_DUP	    2
#define MPI_COMBINER_CONTIGUOUS	    3
#define MPI_COMBINER_VECTOR	    4
#define MPI_COMBINER_HVECTOR	    6
#define MPI_COMBINER_INDEXED	    7
#define MPI_COMBINER_HINDEXED	    9
#define MPI_COMBINER_INDEXED_BLOCK  10
#define MPI_COMBINER_HINDEXED_BLOCK 19
#define MPI_COMBINER_STRUCT	    12
#define MPI_COMBINER_SUBARRAY	    13
#define MPI_COMBINER_DARRAY	    14
#define MPI_COMBINER_F90_REAL	    15
#define MPI_COMBINER_F90_COMPLEX    16
#define MPI_COMBINER_F90_INTEGER    17
#define MPI_COMBINER_RESIZED	    18
#define MPI_ORDER_C		    56
#define MPI_ORDER_FORTRAN	    57
#define MPI_DISTRIBUTE_BLOCK	    121
#define MPI_DISTRIBUTE_CYCLIC	    122
#define MPI_DISTRIBUTE_NONE	    123
#define MPI_DISTRIBUTE_DFLT_DARG    (-49767)

#define MPI_IDENT	     0
#define MPI_CONGRUENT	     1
#define MPI_SIMILAR	     2
#define MPI_UNEQUAL	     3
#define MPI_GRAPH	     1
#define MPI_CART	     2
#define MPI_DIST_GRAPH	     3
#define MPI_COMM_TYPE_SHARED 1

#define MPI_MODE_NOCHECK   1024
#define MPI_MODE_NOSUCCEED 16384

#define MPI_TAG_UB 0x64400001

#define MPI_MAX_ERROR_STRING	       512
#define MPI_MAX_LIBRARY_VERSION_STRING 0x2000
#define MPI_MAX_OBJECT_NAME	       128
#define MPI_MAX_PROCESSOR_NAME	       128

#define MPI_BOTTOM	    ((void *)0)
#define MPI_IN_PLACE	    ((void *)-1)
#define MPI_STATUS_IGNORE   ((MPI_Status *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)1)

#include "../calls.inc"
#include "../calls_large.inc"
#include "../calls_sessions.inc"

#endif
