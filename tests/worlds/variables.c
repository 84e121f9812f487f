// SPDX-License-Identifier: BSD-3-Clause
/* The MPI's tool interface before, during and after MPI_COMM_WORLD, with a performance variable
 * that runs meanwhile, if there is one. */
#include "moves.h"

static void list(void)
{
	int cvars, pvars;

	if (MPI_T_cvar_get_num(&cvars) || MPI_T_pvar_get_num(&pvars))
		pattern_fail("no variables");
	for (int i = 0; i < cvars; i++) {
		char name[256], text[1024];
		int named = sizeof(name), described = sizeof(text), verbosity, bind, scope;
		MPI_Datatype type;
		MPI_T_enum values;

		MPI_T_cvar_get_info(i, name, &named, &verbosity, &type, &values, text, &described,
				    &bind, &scope);
	}
}

int main(int argc, char **argv)
{
	MPI_T_pvar_session session;
	int provided;

	if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided))
		pattern_fail("no tool interface");
	list();
	MPI_Init(&argc, &argv);
	if (MPI_T_pvar_session_create(&session))
		pattern_fail("no session of performance variables");
	for (int i = 0; i < 4; i++)
		moves_do(MPI_COMM_WORLD, (unsigned int)i);
	list();
	MPI_T_pvar_session_free(&session);
	MPI_Finalize();
	list();
	MPI_T_finalize();
	return 0;
}
