/* See trees.h. */
#include "conformance/cli/arguments/trees.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/options.h"

static bool say(char *why, size_t size, const char *what, const char *value, const char *must)
{
    snprintf(why, size, "%s %s is unknown; it must be %s", what, value, must);
    return false;
}

/* Numbers separated by commas, `least` to `most` of them; returns how many, 0 if not so. */
static int32_t numbers(const char *text, int32_t least, int32_t most, double *to)
{
    int32_t n = 0;
    while (n < most) {
        char word[32];
        const size_t length = strcspn(text, ",");
        if (length >= sizeof word) return 0;
        memcpy(word, text, length);
        word[length] = 0;
        if (!option_double(word, &to[n++])) return 0;
        if (!text[length]) return n >= least ? n : 0;
        text += length + 1;
    }
    return 0;
}

/* The same with whole numbers. */
static int32_t counts(const char *text, int32_t least, int32_t most, int32_t *to)
{
    double x[3];
    const int32_t n = numbers(text, least, most, x);
    for (int32_t i = 0; i < n; i++) {
        if (!(x[i] >= 0 && x[i] <= 1e6 && x[i] == (double)(int32_t)x[i])) return 0;
        to[i] = (int32_t)x[i];
    }
    return n;
}

static bool sequoia(const tree_options *o, const char *text, as_shape *shape, char *why,
                    size_t why_size)
{
    int32_t n[2] = {0, AS_SEQUOIA_LEVELS};
    double p[AS_SEQUOIA_LEVELS];
    as_error e = {.text = ""};
    if (counts(text, 1, 2, n) == 0)
        return say(why, why_size, "--tree", o->tree, "sequoia:M or sequoia:M,DEPTH");
    const int32_t ranks = o->rates ? numbers(o->rates, 1, AS_SEQUOIA_LEVELS, p) : 0;
    if (ranks == 0) {
        snprintf(why, why_size,
                 "--tree sequoia needs --rates P,P,..., how often the draft of each rank is "
                 "accepted; assay bench trees measures them");
        return false;
    }
    if (as_sequoia(p, ranks, n[0], n[1], shape, &e) == AS_OK) return true;
    snprintf(why, why_size, "%s", e.text);
    return false;
}

static bool siblings_of(const char *name, bool cold, as_siblings *s, char *why, size_t why_size)
{
    static const char *const names[] = {"iid", "without", "top"};
    if (!name) name = cold ? "top" : "without";
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name) == 0) return *s = (as_siblings)i, true;
    return say(why, why_size, "--siblings", name, "iid, without or top");
}

bool tree_drafter(const tree_options *o, as_lm *draft, const as_sampling *s, as_drafter **d,
                  as_rule *rule, char *why, size_t why_size)
{
    const char *text = o->tree ? o->tree : "3-2-1";
    const bool cold = s->temperature == 0, dynamic = strncmp(text, "dynamic:", 8) == 0,
               best = strncmp(text, "sequoia:", 8) == 0;
    const as_sampling own = cold ? (as_sampling){1, 0, 1, 0} : *s;
    as_error e = {.text = ""};
    as_siblings siblings;
    as_shape shape;
    int32_t n[3];
    if (dynamic && counts(text + 8, 3, 3, n) == 0)
        return say(why, why_size, "--tree", text, "dynamic:K,DEPTH,M");
    if ((dynamic && o->siblings) || (!best && o->rates)) {
        snprintf(why, why_size, "%s has no meaning with --tree %s; leave it out",
                 dynamic && o->siblings ? "--siblings" : "--rates", text);
        return false;
    }
    if (!siblings_of(o->siblings, cold, &siblings, why, why_size)) return false;
    if (best && !sequoia(o, text + 8, &shape, why, why_size)) return false;
    as_status made = dynamic || best ? AS_OK : as_shape_read(text, &shape, &e);
    if (made == AS_OK)
        made = dynamic ? as_draft_dynamic(draft, &own, &(as_dynamic){n[0], n[1], n[2]}, d, &e)
                       : as_draft_tree(draft, &own, &shape, siblings, d, &e);
    *rule = dynamic || siblings == AS_SIBLINGS_TOP ? AS_RULE_TARGET : AS_RULE_RECURSIVE;
    if (made != AS_OK) snprintf(why, why_size, "%s", e.text);
    return made == AS_OK;
}

/* ---- What became of the drafts. -------------------------------------------------------- */

static int32_t least_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

void tree_count(tree_tally *t, const as_step *s)
{
    const as_row *row = s->tree->row;
    for (int32_t d = 0; d <= s->accepted; d++)
        for (int32_t r = 1, rank = 0; r < s->tree->rows; r++) {
            if (row[r].parent != s->path[d]) continue;
            const int32_t depth = least_of(d, TREE_DEPTHS - 1), k = least_of(rank++, TREE_RANKS - 1);
            t->reached[depth][k]++;
            t->accepted[depth][k] += d < s->accepted && s->path[d + 1] == r;
        }
    t->steps++;
    t->tokens += s->emitted;
    t->rows += s->tree->rows;
}

double tree_rate(const tree_tally *t, int32_t rank)
{
    int64_t reached = 0, accepted = 0;
    for (int d = 0; d < TREE_DEPTHS; d++)
        reached += t->reached[d][rank], accepted += t->accepted[d][rank];
    return reached ? (double)accepted / (double)reached : 0;
}

void tree_print(FILE *to, const tree_tally *t)
{
    for (int d = 0; d < TREE_DEPTHS && t->reached[d][0]; d++) {
        fprintf(to, "  depth %2d:", d + 1);
        for (int k = 0; k < TREE_RANKS && t->reached[d][k]; k++)
            fprintf(to, " %.3f of %lld", (double)t->accepted[d][k] / (double)t->reached[d][k],
                    (long long)t->reached[d][k]);
        fputc('\n', to);
    }
    if (t->steps)
        fprintf(to, "  tokens a step %.3f, rows a step %.2f\n", (double)t->tokens / (double)t->steps,
                (double)t->rows / (double)t->steps);
}
