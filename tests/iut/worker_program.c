/* The smallest program that serves `worker`: what the tests' clients start. */
#include <stdio.h>
#include <string.h>
#include "conformance/wire/worker.h"

int main(int argc, char **argv)
{
    if (argc >= 3 && argc <= 4 && strcmp(argv[1], "worker") == 0)
        return worker_main(argv[2], argc == 4 ? argv[3] : "");
    fprintf(stderr, "usage: worker_program worker SPEC [OPTIONS]\n");
    return 2;
}
