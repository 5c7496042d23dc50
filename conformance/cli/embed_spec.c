/* Build tool: reads chapters of spec/ and writes clause_list (clauses.h) as C, with the places
 * in the sources that name a clause.
 *
 *     embed_spec OUT.c ROOT CHAPTER.md... -- SOURCE...
 *
 * A clause is a line `**ID** (KIND) text`; a permitted variation is a table row
 * `| VAR-NN | text | field |`. A chapter without clauses and an id given twice are errors. A
 * source names a clause as ID, or between two ids as `ID to ID`; its name is told from ROOT on.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 1024, ID = 16, LINE = 8192, PLACES = 16384 };

static char seen[IDS][ID];
static int seen_count;

static void die(const char *what, const char *where)
{
    fprintf(stderr, "embed_spec: %s: %s\n", what, where);
    exit(1);
}

static void remember(const char *id)
{
    for (int i = 0; i < seen_count; i++) {
        if (strcmp(seen[i], id) == 0) die("clause defined twice", id);
    }
    if (seen_count == IDS || strlen(id) >= ID) die("too many clauses, or id too long", id);
    strcpy(seen[seen_count++], id);
}

/* A C string literal; what is not plain ASCII goes out as octal. */
static void quote(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c == '?' || c < 0x20 || c > 0x7e) {
            fprintf(out, "\\%03o", c);
        } else {
            fputc(c, out);
        }
    }
    fputc('"', out);
}

/* ---- Places. ------------------------------------------------------------------------ */

static struct {
    char family[ID];    /* "ACC" */
    int first, last;    /* ACC-02 to ACC-04 */
    const char *source; /* from the root on */
    int line;
    bool in_head; /* in the comment that opens the file */
} places[PLACES];
static int place_count;

/* Reads "ACC-02" at `text`; the number of characters, 0 if there is no id. */
static int read_id(const char *text, char family[ID], int *number)
{
    int n = 0;
    while (n < ID - 1 && isupper((unsigned char)text[n])) n++;
    if (n < 2 || text[n] != '-' || !isdigit((unsigned char)text[n + 1]) ||
        !isdigit((unsigned char)text[n + 2]) || isalnum((unsigned char)text[n + 3]))
        return 0;
    snprintf(family, ID, "%.*s", n, text);
    *number = atoi(text + n + 1);
    return n + 3;
}

static void find_places(const char *line, const char *source, int number, bool in_head)
{
    char family[ID], other[ID];
    for (const char *at = line; *at;) {
        int first, last;
        const bool starts = at == line || !isalnum((unsigned char)at[-1]);
        int n = starts ? read_id(at, family, &first) : 0;
        if (n == 0) {
            at++;
            continue;
        }
        last = first;
        if (strncmp(at + n, " to ", 4) == 0) {
            const int m = read_id(at + n + 4, other, &last);
            if (m && strcmp(other, family) == 0)
                n += 4 + m;
            else
                last = first;
        }
        if (place_count == PLACES) die("too many places", source);
        places[place_count].first = first, places[place_count].last = last;
        places[place_count].source = source, places[place_count].line = number;
        places[place_count].in_head = in_head;
        strcpy(places[place_count++].family, family);
        at += n;
    }
}

static void source(const char *path, const char *root)
{
    static char line[LINE];
    FILE *in = fopen(path, "r");
    const size_t n = strlen(root);
    const char *name = strncmp(path, root, n) == 0 ? path + n + 1 : path;
    bool in_head = true;
    if (!in) die("cannot open", path);
    for (int number = 1; fgets(line, sizeof line, in); number++) {
        find_places(line, name, number, in_head);
        in_head = in_head && !strstr(line, "*/");
    }
    fclose(in);
}

static bool names(int place, const char *family, int number)
{
    return strcmp(places[place].family, family) == 0 && places[place].first <= number &&
           number <= places[place].last;
}

/* "ref/verify/chain.c:32,46 ...": a file's lines below its head, or its name alone if only the
 * head names the clause. */
static void print_places(FILE *out, const char *id)
{
    char family[ID];
    int number;
    const char *last = NULL, *separator = "";
    fputc('"', out);
    if (!read_id(id, family, &number)) die("a clause without an id", id);
    for (int i = 0; i < place_count; i++) {
        if (!names(i, family, number)) continue;
        bool below = false;
        for (int j = i; j < place_count && places[j].source == places[i].source; j++)
            below |= names(j, family, number) && !places[j].in_head;
        if (places[i].source != last) {
            fprintf(out, "%s%s", separator, places[i].source);
            separator = " ";
            last = places[i].source;
            if (!below) continue;
            fputc(':', out);
            for (int j = i, told = 0; j < place_count && places[j].source == last; j++)
                if (names(j, family, number) && !places[j].in_head)
                    fprintf(out, told++ ? ",%d" : "%d", places[j].line);
        }
    }
    fputc('"', out);
}

/* ---- Clauses. ----------------------------------------------------------------------- */

static void clause(FILE *out, const char *id, const char *kind, const char *chapter,
                   const char *section, const char *text)
{
    const char *const fields[] = {id, kind, chapter, section, text};
    remember(id);
    fputs("    {", out);
    for (int i = 0; i < 5; i++) {
        quote(out, fields[i]);
        fputs(", ", out);
    }
    print_places(out, id);
    fputs("},\n", out);
}

/* The text up to `end`, which is replaced by the terminator; NULL if it does not occur. */
static char *cut(char *text, const char *end)
{
    char *at = strstr(text, end);
    if (!at) return NULL;
    *at = '\0';
    return at + strlen(end);
}

static int read_line(FILE *out, char *line, const char *chapter, char *section)
{
    char *kind, *text;
    if (strncmp(line, "## ", 3) == 0) {
        snprintf(section, LINE, "%s", line + 3);
    } else if (strncmp(line, "**", 2) == 0 && (kind = cut(line + 2, "** ("))) {
        if (!(text = cut(kind, ") "))) die("clause without kind and text", line + 2);
        clause(out, line + 2, kind, chapter, section, text);
        return 1;
    } else if (strncmp(line, "| VAR-", 6) == 0 && (text = cut(line + 2, " | "))) {
        static char joined[2 * LINE];
        char *field = cut(text, " | ");
        if (!field || !cut(field, " |")) die("variation without its field", line + 2);
        snprintf(joined, sizeof joined, "%s; declared by %s", text, field);
        clause(out, line + 2, "MAY", chapter, section, joined);
        return 1;
    }
    return 0;
}

static void chapter(FILE *out, const char *path)
{
    static char line[LINE], section[LINE];
    FILE *in = fopen(path, "r");
    const char *slash = strrchr(path, '/');
    int clauses = 0;
    if (!in) die("cannot open", path);
    section[0] = '\0';
    while (fgets(line, sizeof line, in)) {
        if (!strchr(line, '\n') && !feof(in)) die("line too long", path);
        line[strcspn(line, "\r\n")] = '\0';
        clauses += read_line(out, line, slash ? slash + 1 : path, section);
    }
    fclose(in);
    if (clauses == 0) die("no clause found", path);
}

int main(int argc, char **argv)
{
    int chapters = 3;
    while (chapters < argc && strcmp(argv[chapters], "--") != 0) chapters++;
    if (chapters >= argc) die("usage", "embed_spec OUT.c ROOT CHAPTER.md... -- SOURCE...");
    for (int i = chapters + 1; i < argc; i++) source(argv[i], argv[2]);
    FILE *out = fopen(argv[1], "w");
    if (!out) die("cannot write", argv[1]);
    fputs("/* Written by embed_spec from spec/ and the sources. */\n"
          "#include \"conformance/cli/clauses.h\"\n\n"
          "const clause clause_list[] = {\n",
          out);
    for (int i = 3; i < chapters; i++) chapter(out, argv[i]);
    fputs("    {NULL, NULL, NULL, NULL, NULL, NULL},\n};\n", out);
    if (ferror(out) | fclose(out)) die("cannot write", argv[1]);
    return 0;
}
