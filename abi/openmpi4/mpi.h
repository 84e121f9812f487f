/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_ABI_OPENMPI4_MPI_H
#define OC_ABI_OPENMPI4_MPI_H

/*
 * What mpi/ needs of the binary interface of Open MPI 4, 5 and 6: handles are addresses of objects
 * in the library, which mpi/abi_openmpi4.c looks up, so none of them has a name here. Libraries:
 * libmpi.so.40.
 */
#include <stddef.h>

typedef ptrdiff_t MPI_Aint;
typedef long long MPI_Offset;
typedef long long MPI_Count;

typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_datatype_t *MPI_Datatype;
typedef struct ompi_errhandler_t *MPI_Errhandler;
typedef struct ompi_file_t *MPI_File;
typedef struct ompi_group_t *MPI_Group;
typedef struct ompi_info_t *MPI_Info;
typedef struct ompi_message_t *MPI_Message;
typedef struct ompi_op_t *MPI_Op;
typedef struct ompi_request_t *MPI_Request;
typedef struct ompi_win_t *MPI_Win;
typedef struct ompi_instance_t *MPI_Session; /* from Open MPI 5 on */

typedef struct ompi_status_public_t {
	int MPI_SOURCE;
	int MPI_TAG;
	int MPI_ERROR;
	int _cancelled;
	size_t _ucount;
} MPI_Status;

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
#define MPI_ERR_PENDING		      19
#define MPI_ERR_IN_STATUS	      18
#define MPI_ERR_NO_MEM		      39
#define MPI_ERR_KEYVAL		      36
#define MPI_ERR_UNSUPPORTED_OPERATION 52
#define MPI_ERR_LASTCODE	      92

#define MPI_ANY_SOURCE	   (-1)
#define MPI_ANY_TAG	   (-1)
#define MPI_PROC_NULL	   (-2)
#define MPI_ROOT	   (-4)
#define MPI_UNDEFINED	   (-32766)
#define MPI_KEYVAL_INVALID (-1)

#define MPI_THREAD_SINGLE     0
#define MPI_THREAD_FUNNELED   1
#define MPI_THREAD_SERIALIZED 2
#define MPI_THREAD_MULTIPLE   3

#define MPI_COMBINER_NAMED	    0
#define MPI_COMBINER_DUP	    1
#define MPI_COMBINER_CONTIGUOUS	    2
#define MPI_COMBINER_VECTOR	    3
#define MPI_COMBINER_HVECTOR	    5
#define MPI_COMBINER_INDEXED	    6
#define MPI_COMBINER_HINDEXED	    8
#define MPI_COMBINER_INDEXED_BLOCK  9
#define MPI_COMBINER_HINDEXED_BLOCK 18
#define MPI_COMBINER_STRUCT	    11
#define MPI_COMBINER_SUBARRAY	    12
#define MPI_COMBINER_DARRAY	    13
#define MPI_COMBINER_F90_REAL	    14
#define MPI_COMBINER_F90_COMPLEX    15
#define MPI_COMBINER_F90_INTEGER    16
#define MPI_COMBINER_RESIZED	    17
#define MPI_ORDER_C		    0
#define MPI_ORDER_FORTRAN	    1
#define MPI_DISTRIBUTE_BLOCK	    0
#define MPI_DISTRIBUTE_CYCLIC	    1
#define MPI_DISTRIBUTE_NONE	    2
#define MPI_DISTRIBUTE_DFLT_DARG    (-1)

#define MPI_IDENT	     0
#define MPI_CONGRUENT	     1
#define MPI_SIMILAR	     2
#define MPI_UNEQUAL	     3
#define MPI_GRAPH	     2
#define MPI_CART	     1
#define MPI_DIST_GRAPH	     3
#define MPI_COMM_TYPE_SHARED 0

#define MPI_MODE_NOCHECK   1
#define MPI_MODE_NOSUCCEED 16

#define MPI_TAG_UB 0

#define MPI_MAX_ERROR_STRING	       256
#define MPI_MAX_LIBRARY_VERSION_STRING 256
#define MPI_MAX_OBJECT_NAME	       64
#define MPI_MAX_PROCESSOR_NAME	       256

#define MPI_BOTTOM	    ((void *)0)
#define MPI_IN_PLACE	    ((void *)1)
#define MPI_STATUS_IGNORE   ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)

#include "../calls.inc"
#include "../calls_large.inc" /* from Open MPI 6 on */
#include "../calls_sessions.inc"

#endif
