/* cublas_load_test.c - the functions of a library are found by their names, and one that is not
 * there is named. Its argument: whether the library in LD_LIBRARY_PATH is `whole` or `lacking`.
 */
#include <stdio.h>
#include <string.h>

#include "gpu/num/cublas_calls.h"

static int numbers(const ag_cublas_calls *c)
{
    void *h = NULL;
    int v;
    return c->create(&h) == 1 && c->destroy(h) == 2 && c->get_version(h, &v) == 3 &&
           c->set_stream(h, h) == 4 && c->set_workspace(h, h, 0) == 5 &&
           c->set_mode(h, 0) == 6 &&
           c->gemm(h, 0, 0, 0, 0, 0, h, h, 0, 0, h, 0, 0, h, h, 0, 0, 0, 0) == 7;
}

int main(int argc, char **argv)
{
    ag_cublas_calls c;
    as_error why = {.text = ""};
    const as_status s = ag_cublas_load(&c, &why);
    const int whole = argc > 1 && strcmp(argv[1], "whole") == 0;
    const int right = whole ? s == AS_OK && numbers(&c)
                            : s == AS_DEVICE && !c.library && strstr(why.text, "cublasGemmEx");
    if (s == AS_OK) ag_cublas_unload(&c);
    printf("%s library: status %d %s: %s\n", whole ? "whole" : "lacking", (int)s, why.text,
           right ? "as expected" : "wrong");
    return right ? 0 : 1;
}
