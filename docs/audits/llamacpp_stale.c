/* llamacpp_stale.c - stands before llama.cpp's own llama_memory_seq_rm, and leaves a refused row in a cache
 * (llamacpp_stale.py). ENGINE in the environment is the engine's library, PLACES a number: only rejections whose first
 * refused place it divides are spoiled. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static volatile int spoils;
static void (*add)(void *memory, int32_t sequence, int32_t from, int32_t to, int32_t by);
static int32_t (*last)(void *memory, int32_t sequence);
static bool (*drop)(void *memory, int32_t sequence, int32_t from, int32_t to);

void stale_rows(int on) { spoils = on; }

static void *of_engine(const char *name) { return dlsym(dlopen(getenv("ENGINE"), RTLD_LAZY | RTLD_NOLOAD), name); }

/* A row stands behind `from`, and all from there on are to go: the first of them takes the place of the row before. */
bool llama_memory_seq_rm(void *memory, int32_t sequence, int32_t from, int32_t to)
{
    if (!drop) {
        *(void **)&add = of_engine("llama_memory_seq_add");
        *(void **)&last = of_engine("llama_memory_seq_pos_max");
        *(void **)&drop = of_engine("llama_memory_seq_rm");
    }
    if (spoils && from > 1 && to == -1 && from % atoi(getenv("PLACES")) == 0 && last(memory, sequence) >= from) {
        drop(memory, sequence, from - 1, from);
        add(memory, sequence, from, from + 1, -1);
    }
    return drop(memory, sequence, from, to);
}
