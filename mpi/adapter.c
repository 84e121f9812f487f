// SPDX-License-Identifier: BSD-3-Clause
#include "adapter.h"

struct oc_adapter oc_adapter;
