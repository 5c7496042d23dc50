/* The generator against the known answers that Random123 publishes, and the uniforms against
 * values worked out from those answers by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "conformance/oracle/law/lane.h"
#include "conformance/oracle/law/philox.h"

static void known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t got[4];
        oracle_philox(known[i].counter, known[i].key, got);
        assert_memory_equal(got, known[i].want, sizeof got);
    }
}

/* Seed, position, purpose and index in the places of RNG-02: the digits of pi again. */
static void words_of_a_sequence(void **state)
{
    (void)state;
    uint32_t got[4];
    oracle_words(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88), 0x13198a2e,
                 0x03707344, got);
    assert_int_equal(got[0], 0xd16cfe09);
    assert_int_equal(got[3], 0x24126ea1);
}

/* Seed 0, position 0, purpose DRAW is the all-zero block. */
static void uniforms(void **state)
{
    (void)state;
    assert_true(oracle_draw_uniform(0, 0, LANE_DRAW) == UINT64_C(0x6627e8d5e169c58d));
    uint32_t w[4];
    oracle_words(7, 3, LANE_ACCEPT, 0, w);
    const double u = oracle_accept_uniform(7, 3);
    assert_true(u * 0x1p29 == (double)(w[0] >> 3));
    assert_true(oracle_draw_uniform(7, 3, LANE_RESIDUAL) !=
                oracle_draw_uniform(7, 3, LANE_DRAW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(words_of_a_sequence),
        cmocka_unit_test(uniforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
