/* The rule for version 1 of the arithmetic (gpu/bench/chunk_rule.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gpu/bench/chunk_rule.h"

#define EXPECT(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            printf("line %d: %s\n", __LINE__, #condition);                                     \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

int main(void)
{
    const double one[4] = {1, 1, 1, 1}, slow[4] = {2, 2, 2, 2};
    EXPECT(chunk_winner(one, (double[]){0.97, 0.97, 0.97, 5.0}, 4) == 1);
    EXPECT(chunk_winner(one, (double[]){0.97, 0.97, 0.99, 0.99}, 4) == 0);
    EXPECT(chunk_winner(one, (double[]){0.99, 0.99, 0.99, 0.99}, 4) == 0);
    EXPECT(chunk_winner(one, (double[]){1.01, 1.01, 1.01, 1.01}, 4) == 0);
    EXPECT(chunk_winner(one, (double[]){1.03, 0.1, 1.03, 1.03}, 4) == -1);
    EXPECT(chunk_winner(one, (double[]){1.03, 0.1, 0.1, 1.03}, 4) == 0);
    EXPECT(chunk_winner(slow, (double[]){1.95, 1.95, 1.95, 1.95}, 4) == 1);
    EXPECT(chunk_winner(slow, (double[]){1.97, 1.97, 1.97, 1.97}, 4) == 0);
    EXPECT(chunk_winner(one, one, 0) == 0);
    EXPECT(strcmp(chunk_decision(0, 0, 0), "grouped") == 0);
    EXPECT(strcmp(chunk_decision(16, 0, 0), "flat") == 0);
    EXPECT(strcmp(chunk_decision(1, 0, 0), "flat") == 0);
    EXPECT(strcmp(chunk_decision(15, 1, 0), "grouped") == 0);
    EXPECT(strcmp(chunk_decision(0, 1, 0), "grouped") == 0);
    EXPECT(strcmp(chunk_decision(15, 0, 1), "undecided") == 0);
    EXPECT(strcmp(chunk_decision(0, 15, 1), "undecided") == 0);
    printf("the rule for chunk sums: as it should be\n");
    return 0;
}
