/* The index of a sharded model. What is accepted names files of the folder itself. */
#include <jansson.h>
#include <string.h>

#include "ref/load/shards.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_error e = {.text = ""};
    const char *tensor;
    json_t *name, *map = as_index_parse(data, size, "index.json", &e);
    if (!map) {
        MUST(strncmp(e.text, "index.json:", 11) == 0);
        return 0;
    }
    MUST(json_object_size(map) > 0);
    json_object_foreach(map, tensor, name)
    {
        const char *file = json_string_value(name);
        MUST(file && file[0] != 0 && file[0] != '.' && strlen(file) < 256);
        for (const char *c = file; *c; c++) MUST(*c != '/' && *c != '\\');
    }
    json_decref(map);
    return 0;
}
