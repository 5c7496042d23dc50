/* ref_chain.h - the reference's rules for trees as verifiers of chains, declared not lossless. */
#ifndef ASSAY_TESTS_CHECKS_REF_CHAIN_H
#define ASSAY_TESTS_CHECKS_REF_CHAIN_H

#include "conformance/iut.h"

/* What the next instance follows: IUT_TREE_*, and the two parameters of every test (iut_tree_batch). */
extern struct ref_chain {
    int32_t rule;
    double parameter[2];
} ref_chain;

/* `verify` with supplied uniforms, `verify_greedy`, and no stream. */
const iut_api *ref_chain_api(void);

#endif
