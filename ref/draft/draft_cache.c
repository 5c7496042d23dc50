/* draft_cache.c - see draft_cache.h. */
#include "ref/draft/draft_cache.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 256 };

as_status as_cache_open(as_draft_cache *c, as_lm *lm, as_error *e)
{
    *c = (as_draft_cache){.lm = lm};
    const as_status s = as_lm_open(lm, &c->sequence, e);
    if (s != AS_OK) return s;
    c->logits = malloc((size_t)lm->V * sizeof *c->logits);
    if (c->logits) return AS_OK;
    as_lm_close(lm, c->sequence);
    return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
}

void as_cache_close(as_draft_cache *c)
{
    as_lm_close(c->lm, c->sequence);
    free(c->token);
    free(c->logits);
}

static as_status reserve(as_draft_cache *c, int32_t tokens, as_error *e)
{
    if ((size_t)tokens <= c->room) return AS_OK;
    const size_t room = (size_t)tokens + (size_t)tokens / 2;
    int32_t *token = realloc(c->token, room * sizeof *token);
    if (!token) return as_fail(e, AS_NO_MEMORY, "no memory for %zu tokens", room);
    c->token = token;
    c->room = room;
    return AS_OK;
}

as_status as_cache_keep(as_draft_cache *c, int32_t tokens, as_error *e)
{
    if (as_lm_length(c->lm, c->sequence) <= tokens) return AS_OK;
    return as_lm_truncate(c->lm, c->sequence, tokens, e);
}

as_status as_cache_begin(as_draft_cache *c, const int32_t *history, int32_t n, as_error *e)
{
    const int32_t held = as_lm_length(c->lm, c->sequence);
    int32_t same = 0;
    if (!c->begins) return AS_OK;
    while (same < held && same < n - 1 && c->token[same] == history[same]) same++;
    c->begins = false;
    return as_cache_keep(c, same, e);
}

as_status as_cache_feed(as_draft_cache *c, const int32_t *token, int32_t n, as_error *e)
{
    const int32_t room = c->lm->rows > 0 && c->lm->rows < PIECE ? c->lm->rows : PIECE;
    const int32_t held = as_lm_length(c->lm, c->sequence);
    as_row row[PIECE];
    int32_t path[PIECE];
    as_status s = reserve(c, held + n, e);
    if (s == AS_OK) memcpy(c->token + held, token, (size_t)n * sizeof *token);
    for (int32_t at = 0; at < n && s == AS_OK; at += room) {
        const int32_t left = n - at, rows = left < room ? left : room, last = rows - 1;
        for (int32_t i = 0; i < rows; i++) {
            row[i] = (as_row){token[at + i], i - 1};
            path[i] = i;
        }
        const as_forward f = {c->sequence, rows, left == rows, row, &last, c->logits};
        s = as_lm_forward(c->lm, &f, 1, e);
        if (s == AS_OK) s = as_lm_commit(c->lm, c->sequence, path, rows, e);
    }
    return s;
}

as_status as_cache_follow(as_draft_cache *c, const int32_t *path, const int32_t *token,
                          int32_t n, as_error *e)
{
    const int32_t held = as_lm_length(c->lm, c->sequence);
    as_status s = reserve(c, held + n, e);
    if (s != AS_OK) return s;
    memcpy(c->token + held, token, (size_t)n * sizeof *token);
    return as_lm_commit(c->lm, c->sequence, path, n, e);
}
