/* `assay bench gpu`: hands over to bench_gpu (gpu/bench), which lies beside this program where
 * nvcc was there to build it. It is a program of its own, so that this one needs no CUDA. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/bench/bench.h"
#include "conformance/wire/beside.h"

int bench_device(char **argv)
{
    char path[1100];
    beside_program("bench_gpu", path, sizeof path);
    argv[0] = path;
    execv(path, argv);
    if (errno == ENOENT)
        fprintf(
            stderr,
            "assay bench gpu: there is no %s; it is built with nvcc: cmake --preset release "
            "-DASSAY_CUDA=ON && cmake --build build --target bench_gpu\n",
            path);
    else
        fprintf(stderr, "assay bench gpu: cannot run %s: %s\n", path, strerror(errno));
    return EXIT_ERROR;
}
