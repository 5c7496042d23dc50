/* example_exec.c - a plugin as a program of its own, for `--iut exec:`. Worth it when your code
 * must own its process: another libc, a device runtime, a launcher (exec:"ssh host
 * ./my_program"). Link this with your plugin's source and libassay_iut; worker_serve speaks the
 * frames, keeps your prints out of them, and checks every request before your code sees it. */
#include "conformance/wire/worker.h"

int main(int argc, char **argv)
{
    return worker_serve(iut_entry(), argc > 1 ? argv[1] : "");
}
