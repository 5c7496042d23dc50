/* Every check of the suite, in the order it runs: hard facts, replay, certificates, law (LAY). */
#include <stddef.h>

#include "conformance/checks/check.h"

const check *const check_list[] = {NULL};
