/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ABI_MPI5_MPI_H
#define OC_ABI_MPI5_MPI_H

/*
 * What mpi/ needs of the binary interface that the MPI 5.0 standard defines (its chapter 20 and
 * annex A): handles are pointers, those of predefined objects constants. Libraries:
 * libmpi_abi.so.1.
 */
#include <stdint.h>

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef MPI_Offset MPI_Count;

typedef struct {
	int MPI_SOURCE;
	int MPI_TAG;
	int MPI_ERROR;
	int MPI_internal[5];
} MPI_Status;

typedef struct MPI_ABI_Comm *MPI_Comm;
#define MPI_COMM_NULL  ((MPI_Comm)0x100)
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF  ((MPI_Comm)0x102)

typedef struct MPI_ABI_Group *MPI_Group;
#define MPI_GROUP_NULL	((MPI_Group)0x108)
#define MPI_GROUP_EMPTY ((MPI_Group)0x109)

typedef struct MPI_ABI_Win *MPI_Win;
#define MPI_WIN_NULL ((MPI_Win)0x110)

typedef struct MPI_ABI_File *MPI_File;
#define MPI_FILE_NULL ((MPI_File)0x118)

typedef struct MPI_ABI_Session *MPI_Session;
#define MPI_SESSION_NULL ((MPI_Session)0x120)

typedef struct MPI_ABI_Message *MPI_Message;
#define MPI_MESSAGE_NULL    ((MPI_Message)0x128)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)0x129)

typedef struct MPI_ABI_Info *MPI_Info;
#define MPI_INFO_NULL ((MPI_Info)0x130)
#define MPI_INFO_ENV  ((MPI_Info)0x131)

typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
#define MPI_ERRHANDLER_NULL  ((MPI_Errhandler)0x140)
#define MPI_ERRORS_ARE_FATAL ((MPI_Errhandler)0x141)
/* MPI_ERRORS_RETURN and MPI_ERRORS_ABORT are left out: libraries that are about have 0x142 and
 * 0x143 for them, or the other way round (mpi/abi_mpi5.c). */

typedef struct MPI_ABI_Request *MPI_Request;
#define MPI_REQUEST_NULL ((MPI_Request)0x180)

typedef struct MPI_ABI_Op *MPI_Op;
#define MPI_OP_NULL ((MPI_Op)0x20)
#define MPI_MAX	    ((MPI_Op)0x23)
#define MPI_MIN	    ((MPI_Op)0x22)
#define MPI_SUM	    ((MPI_Op)0x21)
#define MPI_PROD    ((MPI_Op)0x24)
#define MPI_LAND    ((MPI_Op)0x30)
#define MPI_BAND    ((MPI_Op)0x28)
#define MPI_LOR	    ((MPI_Op)0x31)
#define MPI_BOR	    ((MPI_Op)0x29)
#define MPI_LXOR    ((MPI_Op)0x32)
#define MPI_BXOR    ((MPI_Op)0x2a)
#define MPI_MAXLOC  ((MPI_Op)0x39)
#define MPI_MINLOC  ((MPI_Op)0x38)
#define MPI_REPLACE ((MPI_Op)0x3c)
#define MPI_NO_OP   ((MPI_Op)0x3d)

typedef struct MPI_ABI_Datatype *MPI_Datatype;
#define MPI_DATATYPE_NULL	    ((MPI_Datatype)0x200)
#define MPI_PACKED		    ((MPI_Datatype)0x207)
#define MPI_BYTE		    ((MPI_Datatype)0x247)
#define MPI_CHAR		    ((MPI_Datatype)0x243)
#define MPI_SIGNED_CHAR		    ((MPI_Datatype)0x244)
#define MPI_UNSIGNED_CHAR	    ((MPI_Datatype)0x245)
#define MPI_WCHAR		    ((MPI_Datatype)0x23c)
#define MPI_SHORT		    ((MPI_Datatype)0x208)
#define MPI_UNSIGNED_SHORT	    ((MPI_Datatype)0x20c)
#define MPI_INT			    ((MPI_Datatype)0x209)
#define MPI_UNSIGNED		    ((MPI_Datatype)0x20d)
#define MPI_LONG		    ((MPI_Datatype)0x20a)
#define MPI_UNSIGNED_LONG	    ((MPI_Datatype)0x20e)
#define MPI_LONG_LONG		    ((MPI_Datatype)0x20b)
#define MPI_UNSIGNED_LONG_LONG	    ((MPI_Datatype)0x20f)
#define MPI_FLOAT		    ((MPI_Datatype)0x210)
#define MPI_DOUBLE		    ((MPI_Datatype)0x214)
#define MPI_LONG_DOUBLE		    ((MPI_Datatype)0x220)
#define MPI_C_BOOL		    ((MPI_Datatype)0x238)
#define MPI_C_FLOAT_COMPLEX	    ((MPI_Datatype)0x212)
#define MPI_C_DOUBLE_COMPLEX	    ((MPI_Datatype)0x216)
#define MPI_C_LONG_DOUBLE_COMPLEX   ((MPI_Datatype)0x224)
#define MPI_INT8_T		    ((MPI_Datatype)0x240)
#define MPI_INT16_T		    ((MPI_Datatype)0x248)
#define MPI_INT32_T		    ((MPI_Datatype)0x250)
#define MPI_INT64_T		    ((MPI_Datatype)0x258)
#define MPI_UINT8_T		    ((MPI_Datatype)0x241)
#define MPI_UINT16_T		    ((MPI_Datatype)0x249)
#define MPI_UINT32_T		    ((MPI_Datatype)0x251)
#define MPI_UINT64_T		    ((MPI_Datatype)0x259)
#define MPI_AINT		    ((MPI_Datatype)0x201)
#define MPI_COUNT		    ((MPI_Datatype)0x202)
#define MPI_OFFSET		    ((MPI_Datatype)0x203)
#define MPI_FLOAT_INT		    ((MPI_Datatype)0x228)
#define MPI_DOUBLE_INT		    ((MPI_Datatype)0x229)
#define MPI_LONG_INT		    ((MPI_Datatype)0x22a)
#define MPI_SHORT_INT		    ((MPI_Datatype)0x22c)
#define MPI_2INT		    ((MPI_Datatype)0x22b)
#define MPI_LONG_DOUBLE_INT	    ((MPI_Datatype)0x22d)
#define MPI_CXX_BOOL		    ((MPI_Datatype)0x239)
#define MPI_CXX_FLOAT_COMPLEX	    ((MPI_Datatype)0x213)
#define MPI_CXX_DOUBLE_COMPLEX	    ((MPI_Datatype)0x217)
#define MPI_CXX_LONG_DOUBLE_COMPLEX ((MPI_Datatype)0x225)
#define MPI_CHARACTER		    ((MPI_Datatype)0x21e)
#define MPI_LOGICAL		    ((MPI_Datatype)0x218)
#define MPI_INTEGER		    ((MPI_Datatype)0x219)
#define MPI_REAL		    ((MPI_Datatype)0x21a)
#define MPI_DOUBLE_PRECISION	    ((MPI_Datatype)0x21c)
#define MPI_COMPLEX		    ((MPI_Datatype)0x21b)
#define MPI_DOUBLE_COMPLEX	    ((MPI_Datatype)0x21d)
#define MPI_2INTEGER		    ((MPI_Datatype)0x232)
#define MPI_2REAL		    ((MPI_Datatype)0x230)
#define MPI_2DOUBLE_PRECISION	    ((MPI_Datatype)0x231)
#define MPI_LOGICAL1		    ((MPI_Datatype)0x2c0)
#define MPI_LOGICAL2		    ((MPI_Datatype)0x2c8)
#define MPI_LOGICAL4		    ((MPI_Datatype)0x2d0)
#define MPI_LOGICAL8		    ((MPI_Datatype)0x2d8)
#define MPI_LOGICAL16		    ((MPI_Datatype)0x2e0)
#define MPI_INTEGER1		    ((MPI_Datatype)0x2c1)
#define MPI_INTEGER2		    ((MPI_Datatype)0x2c9)
#define MPI_INTEGER4		    ((MPI_Datatype)0x2d1)
#define MPI_INTEGER8		    ((MPI_Datatype)0x2d9)
#define MPI_INTEGER16		    ((MPI_Datatype)0x2e1)
#define MPI_REAL2		    ((MPI_Datatype)0x2ca)
#define MPI_REAL4		    ((MPI_Datatype)0x2d2)
#define MPI_REAL8		    ((MPI_Datatype)0x2da)
#define MPI_REAL16		    ((MPI_Datatype)0x2e2)
#define MPI_COMPLEX4		    ((MPI_Datatype)0x2d3)
#define MPI_COMPLEX8		    ((MPI_Datatype)0x2db)
#define MPI_COMPLEX16		    ((MPI_Datatype)0x2e3)
#define MPI_COMPLEX32		    ((MPI_Datatype)0x2eb)

/* Classes of errors. */
#define MPI_SUCCESS		      0
#define MPI_ERR_BUFFER		      1
#define MPI_ERR_COUNT		      2
#define MPI_ERR_TYPE		      3
#define MPI_ERR_TAG		      4
#define MPI_ERR_COMM		      5
#define MPI_ERR_RANK		      6
#define MPI_ERR_REQUEST		      7
#define MPI_ERR_ROOT		      8
#define MPI_ERR_GROUP		      9
#define MPI_ERR_OP		      10
#define MPI_ERR_TOPOLOGY	      11
#define MPI_ERR_DIMS		      12
#define MPI_ERR_ARG		      13
#define MPI_ERR_UNKNOWN		      14
#define MPI_ERR_TRUNCATE	      15
#define MPI_ERR_OTHER		      16
#define MPI_ERR_INTERN		      17
#define MPI_ERR_PENDING		      18
#define MPI_ERR_IN_STATUS	      19
#define MPI_ERR_NO_MEM		      39
#define MPI_ERR_KEYVAL		      36
#define MPI_ERR_UNSUPPORTED_OPERATION 55
#define MPI_ERR_LASTCODE	      0x3fff

#define MPI_ANY_SOURCE	   (-1)
#define MPI_ANY_TAG	   (-2)
#define MPI_PROC_NULL	   (-3)
#define MPI_ROOT	   (-4)
#define MPI_UNDEFINED	   (-32766)
#define MPI_KEYVAL_INVALID 0

#define MPI_THREAD_SINGLE     0
#define MPI_THREAD_FUNNELED   1024
#define MPI_THREAD_SERIALIZED 2048
#define MPI_THREAD_MULTIPLE   0x1000

#define MPI_COMBINER_NAMED	    101
#define MPI_COMBINER_DUP	    102
#define MPI_COMBINER_CONTIGUOUS	    103
#define MPI_COMBINER_VECTOR	    104
#define MPI_COMBINER_HVECTOR	    105
#define MPI_COMBINER_INDEXED	    106
#define MPI_COMBINER_HINDEXED	    107
#define MPI_COMBINER_INDEXED_BLOCK  108
#define MPI_COMBINER_HINDEXED_BLOCK 109
#define MPI_COMBINER_STRUCT	    110
#define MPI_COMBINER_SUBARRAY	    111
#define MPI_COMBINER_DARRAY	    112
#define MPI_COMBINER_F90_REAL	    113
#define MPI_COMBINER_F90_COMPLEX    114
#define MPI_COMBINER_F90_INTEGER    115
#define MPI_COMBINER_RESIZED	    116
#define MPI_ORDER_C		    12
#define MPI_ORDER_FORTRAN	    15
#define MPI_DISTRIBUTE_BLOCK	    17
#define MPI_DISTRIBUTE_CYCLIC	    18
#define MPI_DISTRIBUTE_NONE	    16
#define MPI_DISTRIBUTE_DFLT_DARG    19

#define MPI_IDENT	     201
#define MPI_CONGRUENT	     202
#define MPI_SIMILAR	     203
#define MPI_UNEQUAL	     204
#define MPI_GRAPH	     212
#define MPI_CART	     211
#define MPI_DIST_GRAPH	     213
#define MPI_COMM_TYPE_SHARED 221

#define MPI_MODE_NOCHECK   1024
#define MPI_MODE_NOSUCCEED 16384

#define MPI_TAG_UB 501

#define MPI_MAX_ERROR_STRING	       512
#define MPI_MAX_LIBRARY_VERSION_STRING 0x2000
#define MPI_MAX_OBJECT_NAME	       128
#define MPI_MAX_PROCESSOR_NAME	       256

#define MPI_BOTTOM	    ((void *)0)
#define MPI_IN_PLACE	    ((void *)1)
#define MPI_STATUS_IGNORE   ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)

#include "../calls.inc"
#include "../calls_large.inc"
#include "../calls_sessions.inc"

#endif
