/* Build tool: reads chapters of spec/ and writes clause_list (clauses.h) as C.
 *
 *     embed_spec OUT.c CHAPTER.md...
 *
 * A clause is a line `**ID** (KIND) text`; a permitted variation is a table row
 * `| VAR-NN | text | field |`. A chapter without clauses and an id given twice are errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 1024, ID = 16, LINE = 8192 };

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

static void clause(FILE *out, const char *id, const char *kind, const char *chapter,
                   const char *section, const char *text)
{
    const char *const fields[] = {id, kind, chapter, section, text};
    remember(id);
    fputs("    {", out);
    for (int i = 0; i < 5; i++) {
        quote(out, fields[i]);
        fputs(i < 4 ? ", " : "},\n", out);
    }
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
    if (argc < 3) die("usage", "embed_spec OUT.c CHAPTER.md...");
    FILE *out = fopen(argv[1], "w");
    if (!out) die("cannot write", argv[1]);
    fputs("/* Written by embed_spec from spec/. */\n#include \"conformance/cli/clauses.h\"\n\n"
          "const clause clause_list[] = {\n",
          out);
    for (int i = 2; i < argc; i++) chapter(out, argv[i]);
    fputs("    {NULL, NULL, NULL, NULL, NULL},\n};\n", out);
    if (ferror(out) | fclose(out)) die("cannot write", argv[1]);
    return 0;
}
