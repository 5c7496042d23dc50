/* interface.c - see interface.h. */
#include "conformance/cli/interface.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/wire/claims.h"
#include "conformance/wire/layout.h"

static const char *const needs[] = {"nothing", "panel", "model"};

/* ---- Terms: a number, or a name with what is added to it. ------------------------ */

/* The names of what is not in `args`. */
static const char *known_name(int of)
{
    static const char *const name[VALUES] = {[PANEL_V] = "panel.V",
                                             [PANEL_S] = "panel.S",
                                             [MODEL_V] = "model.V",
                                             [MODEL_LAYERS] = "model.layers",
                                             [MODEL_KV_HEADS] = "model.kv_heads",
                                             [MODEL_HEAD_DIM] = "model.head_dim",
                                             [MODEL_SEQUENCES] = "model.sequences",
                                             [MODEL_POSITIONS] = "model.positions"};
    return name[of];
}

static const char *name_of(const layout_op *l, int of)
{
    const layout_number *i = l->number;
    while (i->name && i->value != of) i++;
    return i->name ? i->name : known_name(of);
}

static void print_term(const layout_op *l, layout_term t, char *text, size_t size)
{
    if (t.of < 0)
        snprintf(text, size, "%lld", (long long)t.plus);
    else if (t.plus == 0)
        snprintf(text, size, "%s", name_of(l, t.of));
    else
        snprintf(text, size, "%s %c %lld", name_of(l, t.of), t.plus < 0 ? '-' : '+',
                 t.plus < 0 ? -(long long)t.plus : (long long)t.plus);
}

/* For people, limits as what they are. */
static void print_limit(const layout_op *l, layout_term t, char *text, size_t size)
{
    if (t.of < 0 && t.plus == INT32_MAX)
        snprintf(text, size, "2^31 - 1");
    else if (t.of < 0 && t.plus == UINT32_MAX)
        snprintf(text, size, "2^32 - 1");
    else if (t.of < 0 && t.plus == 1 << 20)
        snprintf(text, size, "2^20");
    else
        print_term(l, t, text, size);
}

static json_t *term(const layout_op *l, layout_term t)
{
    char text[60];
    print_term(l, t, text, sizeof text);
    return t.of < 0 ? json_integer(t.plus) : json_string(text);
}

/* ---- For programs. --------------------------------------------------------------- */

static json_t *arrays(const layout_op *l, bool out)
{
    json_t *list = json_array();
    for (const layout_array *a = l->array; a->name; a++) {
        if (layout_is_answer(a) != out) continue;
        json_t *shape = json_array();
        for (int32_t i = 0; i < a->rank; i++)
            json_array_append_new(shape, term(l, a->extent[i]));
        json_t *row = json_pack("[sso]", a->name, tensor_name(a->type), shape);
        if (a->flow == FLOW_OUT_TOLD) json_array_append_new(row, json_string("tell"));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *operation(iut_op op)
{
    const layout_op *l = &layout[op];
    json_t *args = json_array(), *texts = json_array();
    for (const layout_number *i = l->number; i->name; i++)
        json_array_append_new(args,
                              json_pack("[soo]", i->name, term(l, i->low), term(l, i->high)));
    for (const layout_text *t = l->text; t->name; t++)
        json_array_append_new(texts, json_string(t->name));
    return json_pack("{ss ss so so so so}", "op", iut_op_name(op), "needs", needs[l->need],
                     "texts", texts, "args", args, "request", arrays(l, false), "reply",
                     arrays(l, true));
}

/* The words of a choice or a set, by their numbers. */
static json_t *words(const claim_row *row)
{
    json_t *object = json_object();
    int32_t i = 0;
    for (const char *word = row->words; word; i++) {
        const char *end = strchr(word, '|');
        const size_t length = end ? (size_t)(end - word) : strlen(word);
        char name[40];
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        if (strcmp(name, "-") != 0)
            json_object_set_new(object, name,
                                json_integer(row->kind == CLAIM_SET ? 1 << i : i + 1));
        word = end ? end + 1 : NULL;
    }
    return object;
}

/* What holds if it is not said, words with blanks between; NULL: there is none. */
static json_t *unsaid(const claim_row *row)
{
    char text[100] = "";
    snprintf(text, sizeof text, "%s", row->unsaid);
    for (char *c = text; *c; c++)
        if (*c == '|') *c = ' ';
    return json_string(text);
}

static json_t *claim(const claim_row *row)
{
    static const char *const kinds[] = {[CLAIM_TEXT] = "text", [CLAIM_ORDER] = "text", [CLAIM_CHOICE] = "choice",
                                        [CLAIM_SET] = "set", [CLAIM_NUMBER] = "number"};
    json_t *object = json_pack("{ss ss si ss}", "claim", row->name, "kind", kinds[row->kind],
                               "since", (int)row->since, "question", row->question);
    if (row->words) json_object_set_new(object, "words", words(row));
    if (row->kind == CLAIM_NUMBER) json_object_set_new(object, "most", json_integer(row->most));
    if (row->unsaid)
        json_object_set_new(object, "default",
                            row->kind == CLAIM_NUMBER ? json_integer(claim_unsaid(row)) : unsaid(row));
    if (row->later) json_object_set_new(object, "later", json_pack("[ii]", (int)row->later, (int)row->later_since));
    return object;
}

/* One on a line; takes the rows. */
static bool print_rows(json_t *rows)
{
    size_t i;
    json_t *row;
    bool written = rows;
    json_array_foreach(rows, i, row)
    {
        printf(i ? ",\n " : "\n ");
        written = json_dumpf(row, stdout, 0) == 0 && written;
    }
    json_decref(rows);
    return written;
}

static bool print_json(void)
{
    json_t *operations = json_array(), *claims = json_array();
    for (iut_op op = OP_PANEL; op < OP_COUNT; op++)
        json_array_append_new(operations, operation(op));
    for (const claim_row *row = claim_table; row->name; row++)
        json_array_append_new(claims, claim(row));
    printf("{\"frames\": %d,\n\"operations\": [", FRAME_VERSION);
    bool written = print_rows(operations);
    printf("],\n\"claims\": [");
    written = print_rows(claims) && written;
    printf("]}\n");
    return written && fflush(stdout) == 0;
}

/* ---- For people. ----------------------------------------------------------------- */

static void print_array(const layout_op *l, const layout_array *a)
{
    char text[60];
    printf("`%s` %s[", a->name, tensor_name(a->type));
    for (int32_t i = 0; i < a->rank; i++) {
        print_term(l, a->extent[i], text, sizeof text);
        printf("%s%s", i ? ", " : "", text);
    }
    printf("]%s", a->flow == FLOW_IN_OPTIONAL || a->flow == FLOW_OUT_TOLD ? " or absent" : "");
}

static void print_arrays(const layout_op *l, bool out)
{
    const char *comma = "";
    for (const layout_array *a = l->array; a->name; a++) {
        if (layout_is_answer(a) != out) continue;
        printf("%s", comma);
        print_array(l, a);
        comma = ", ";
    }
}

static void print_operation(iut_op op)
{
    const layout_op *l = &layout[op];
    const char *comma = "";
    char low[60], high[60];
    printf("| `%s` | %s | ", iut_op_name(op), needs[l->need]);
    for (const layout_text *t = l->text; t->name; t++, comma = ", ")
        printf("%s`%s`, a text", comma, t->name);
    for (const layout_number *i = l->number; i->name; i++, comma = ", ") {
        print_limit(l, i->low, low, sizeof low);
        print_limit(l, i->high, high, sizeof high);
        if (strcmp(low, high) == 0)
            printf("%s`%s` = %s", comma, i->name, low);
        else
            printf("%s`%s` %s to %s", comma, i->name, low, high);
    }
    printf(" | ");
    print_arrays(l, false);
    printf(" | ");
    print_arrays(l, true);
    printf(" |\n");
}

static void print_claim(const claim_row *row)
{
    printf("| `%s` | ", row->name);
    if (row->kind == CLAIM_TEXT) printf("a text");
    if (row->kind == CLAIM_ORDER) printf("an order of `temperature top_k top_p min_p`, or a word for one");
    if (row->kind == CLAIM_NUMBER && row->most != INT32_MAX) printf("0 to %d", (int)row->most);
    if (row->kind == CLAIM_NUMBER && row->most == INT32_MAX) printf("0 or more");
    if (row->words) {
        json_t *named = words(row), *value;
        const char *word, *comma = row->kind == CLAIM_SET ? "some of " : "";
        json_object_foreach(named, word, value)
        {
            printf("%s`%s` (%lld)", comma, word, (long long)json_integer_value(value));
            comma = ", ";
        }
        json_decref(named);
    }
    json_t *said_by_none = row->unsaid ? unsaid(row) : NULL;
    printf(said_by_none ? " | `%s` | %s |\n" : " | %s | %s |\n", said_by_none ? json_string_value(said_by_none) : "",
           row->question);
    json_decref(said_by_none);
}

static bool print_page(void)
{
    printf("# The interface on the wire\n\n"
           "Written by `assay interface --markdown`, from the tables that the suite and its "
           "worker run on. The\n"
           "operations and claims are those of [`iut.h`](../conformance/iut.h); the format of "
           "frames is chapter 6 of\n"
           "the [specification](../spec/06-conformance.md), the clauses FRM. `assay "
           "interface` prints the same as JSON.\n\n"
           "## Claims\n\n"
           "In Python a claim is a word, or words with blanks between; on the wire and in C it "
           "is the number in\n"
           "brackets, or the sum of numbers. What is left out is not said; for some claims a word or a\n"
           "number holds then.\n\n"
           "| claim | words | if it is not said | question |\n|---|---|---|---|\n");
    for (const claim_row *row = claim_table; row->name; row++) print_claim(row);
    printf(
        "\n## Operations\n\n"
        "`args` are integers unless it is said otherwise, in the ranges given. `panel.` and "
        "`model.` are the numbers\n"
        "of the last panel and model. An array of a reply arrives filled with -1, or NaN.\n\n"
        "| op | needs | args | tensors of the request | of the reply "
        "|\n|---|---|---|---|---|\n");
    for (iut_op op = OP_PANEL; op < OP_COUNT; op++) print_operation(op);
    return fflush(stdout) == 0;
}

static const option options[] = {
    {"--markdown", NULL, "as the page docs/interface.md, not as JSON", OPTION_FLAG, .at = 0},
};

static const option_table table = {
    "interface",
    "usage: assay interface [--markdown]\n\nPrints the operations and claims on the wire.\n",
    options, 1, NULL};

int interface_main(int argc, char **argv)
{
    bool page = false;
    int code;
    if (!options_read(&table, &page, argc, argv, NULL, &code)) return code;
    return (page ? print_page() : print_json()) ? EXIT_CONFORMANT : EXIT_ERROR;
}
