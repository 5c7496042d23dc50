/* trees_rounding.c - how far the integers of SIB-02 and SIB-03 are from rational numbers: what twelve refusals leave
 * at a node of V = 1000, in the chapter's integers and in exact rationals of the same rows. Siblings are independent,
 * without replacement, or from a row each; rows are flat to peaked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/oracle/law/tree.h"
#include "tests/random.h"

enum { V = 1000, REFUSALS = 12, NODES = REFUSALS + 1, ROWS = NODES, WALKS = 6, WAYS = 3 };
/* In total variation. In 100 walks of each way it was 6.62e-12 at most. */
static const double MOST = 8e-12;

static const char *const way_name[WAYS] = {"independent", "without replacement", "a row each"};

/* Multiples of 2^-24 that add up to 1, so that the first refusal is exact. By exponential variables to a power: of 1 the
 * ids differ little, of 4 a few have most. */
static void random_row(uint64_t *rng, float *row, int32_t power)
{
    double w[V], sum = 0, left = 1;
    for (int32_t x = 0; x < V; x++) sum += w[x] = pow(-log1p(-unit(rng)), power);
    for (int32_t x = 0; x < V; x++) left -= (double)(row[x] = (float)(floor(w[x] / sum * 0x1p24) * 0x1p-24));
    row[below(rng, V)] += (float)left;
}

static void shares_new(mpq_t *share)
{
    for (int32_t x = 0; x < V; x++) mpq_init(share[x]);
}

static void shares_free(mpq_t *share)
{
    for (int32_t x = 0; x < V; x++) mpq_clear(share[x]);
}

/* The total variation between what is left in integers and in rational numbers. */
static double distance(const oracle_tree_request *r, int32_t refusals)
{
    mpq_t whole[V], exact[V], sum;
    shares_new(whole), shares_new(exact);
    mpq_init(sum);
    if (!oracle_tree_left(r, 0, refusals, false, whole) || !oracle_tree_left(r, 0, refusals, true, exact)) {
        fprintf(stderr, "the request is refused\n");
        exit(EXIT_FAILURE);
    }
    double tv = 0; /* of doubles: the differences are exact, their sum has 53 bits */
    for (int32_t x = 0; x < V; x++) {
        mpq_sub(sum, whole[x], exact[x]);
        tv += fabs(mpq_get_d(sum)) / 2;
    }
    mpq_clear(sum);
    shares_free(whole), shares_free(exact);
    return tv;
}

/* A node whose children are drawn as that way says, and refused. */
static double walk(uint64_t *rng, int32_t way, int32_t power)
{
    static float row[ROWS][V];
    const float *rows[ROWS];
    oracle_tree_node node[NODES] = {{.token = -1, .parent = -1, .without = way == 1}};
    for (int32_t i = 0; i < ROWS; i++) random_row(rng, row[i], power), rows[i] = row[i];
    for (int32_t i = 1; i < NODES; i++)
        node[i] = (oracle_tree_node){.token = below(rng, V), .q = way == 2 ? i : 1};
    const oracle_tree_request r = {.rule = ORACLE_TREE_RECURSIVE, .V = V, .rows = ROWS, .nodes = NODES, .row = rows,
                                   .node = node};
    double most = 0;
    for (int32_t k = 1; k <= REFUSALS; k++) most = fmax(most, distance(&r, k));
    return most;
}

int main(void)
{
    uint64_t rng = 4105;
    int failures = 0;
    for (int32_t way = 0; way < WAYS; way++) {
        double most = 0;
        for (int32_t i = 0; i < WALKS; i++) most = fmax(most, walk(&rng, way, 1 + i % 4));
        printf("%-20s %d walks, at most %.3g from the exact law\n", way_name[way], WALKS, most);
        failures += !(most <= MOST);
    }
    printf("%d failures\n", failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
