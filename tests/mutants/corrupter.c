/* corrupter.c - a liar on the wire: passes the frames of an honest worker on until one is large
 * enough to be an answer of tensors, and spoils that one. Used as `worker | corrupter MODE`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Claims and refusals are headers alone; the answers of a batch are longer. */
enum { HONEST = 4096 };

static uint64_t length_of(const unsigned char *prefix)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) n = n << 8 | prefix[i];
    return n;
}

static int put(const void *data, size_t size)
{
    return fwrite(data, 1, size, stdout) == size && fflush(stdout) == 0;
}

/* What becomes of a frame: its 8 bytes of length and its body. */
static void spoil(const char *mode, unsigned char *prefix, unsigned char *body, size_t n)
{
    if (strcmp(mode, "garbage") == 0) memset(prefix, 0xA5, 8), memset(body, 0xA5, n);
    if (strcmp(mode, "header") == 0) memset(body + 4, '{', 8);
    if (strcmp(mode, "shape") == 0) {
        unsigned char *shape = memchr(body, '[', n); /* ["tensors": [["name", "i32", [N ... */
        for (; shape && shape < body + n && (*shape < '1' || *shape > '9'); shape++) continue;
        while (shape && shape[1] >= '0' && shape[1] <= '9') shape++;
        if (shape) *shape = *shape == '9' ? '8' : (unsigned char)(*shape + 1);
    }
    put(prefix, 8);
    put(body, strcmp(mode, "half") == 0 ? n / 2 : n);
    if (strcmp(mode, "more") == 0) put(body, n);
}

int main(int argc, char **argv)
{
    unsigned char prefix[8];
    while (argc == 2 && fread(prefix, 1, 8, stdin) == 8) {
        const size_t n = (size_t)length_of(prefix);
        unsigned char *body = malloc(n + 1);
        if (!body || fread(body, 1, n, stdin) != n) return 1;
        if (n > HONEST)
            spoil(argv[1], prefix, body, n);
        else
            put(prefix, 8), put(body, n);
        free(body);
    }
    return 0;
}
