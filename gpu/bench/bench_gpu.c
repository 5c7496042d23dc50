/* bench_gpu.c - how near gpu/ is to what the device can do: products, acceptance rules, whole
 * steps, whole methods, and what a row's logits make of the rows beside it (parts.h). */
#include "gpu/bench/parts.h"

int main(int argc, char **argv)
{
    static const char *const name[] = {"products", "rules", "steps", "decode", "shapes", NULL};
    static ag_part *const part[] = {ag_bench_products, ag_bench_rules, ag_bench_steps,
                                    ag_bench_decode, ag_bench_shapes};
    ag_bench b;
    ag_bench_open(&b, "Kernels and steps", name, argc, argv);
    for (int i = 0; name[i]; i++) ag_bench_part(&b, name[i], part[i]);
    return ag_bench_close(&b);
}
