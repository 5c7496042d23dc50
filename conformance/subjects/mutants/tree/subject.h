/* subject.h - what an implementation with trees claims, and its operation (walk.h) over the panel of chain/subject.h. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_TREE_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_TREE_SUBJECT_H

#include "conformance/subjects/mutants/chain/rules.h"

bool tree_setting(manner how);

/* Takes the operations of chains away but for `verify`, and adds verify_tree and its claims. */
void tree_operations(iut_api *api);

#endif
