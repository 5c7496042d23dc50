/* list.c - see list.h. */
#include "conformance/oracle/law/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *memory)
{
    if (memory) return memory;
    fputs("assay: the memory is too short for the oracle\n", stderr);
    abort();
}

void *oracle_take(size_t count, size_t size)
{
    return need(calloc(count + 1, size));
}

/* Room for one more entry of `size` bytes. */
static void *grown(void *entries, int32_t n, int32_t *room, size_t size)
{
    if (n < *room) return entries;
    *room = *room ? 2 * *room : 8;
    return need(realloc(entries, (size_t)*room * size));
}

void oracle_push(oracle_list *list, int32_t token)
{
    list->t = grown(list->t, list->n, &list->room, sizeof *list->t);
    list->t[list->n++] = token;
}

void oracle_append(oracle_list *list, const int32_t *t, int32_t n)
{
    for (int32_t i = 0; i < n; i++) oracle_push(list, t[i]);
}

void oracle_drop(oracle_list *list, int32_t k)
{
    if (k > list->n) k = list->n;
    for (int32_t i = k; i < list->n; i++) list->t[i - k] = list->t[i];
    list->n -= k;
}

void oracle_copy(oracle_list *to, const oracle_list *from)
{
    oracle_list copy = {0};
    oracle_append(&copy, from->t, from->n);
    oracle_list_free(to);
    *to = copy;
}

bool oracle_alike(const oracle_list *a, const oracle_list *b)
{
    return a->n == b->n && (a->n == 0 || !memcmp(a->t, b->t, (size_t)a->n * sizeof *a->t));
}

void oracle_list_free(oracle_list *list)
{
    free(list->t);
    *list = (oracle_list){0};
}

oracle_list *oracle_another(oracle_lists *lists)
{
    lists->l = grown(lists->l, lists->n, &lists->room, sizeof *lists->l);
    oracle_list *list = &lists->l[lists->n++];
    *list = (oracle_list){0};
    return list;
}

void oracle_add_copy(oracle_lists *lists, const oracle_list *list)
{
    oracle_list copy = {0};
    oracle_copy(&copy, list);
    *oracle_another(lists) = copy;
}

void oracle_remove(oracle_lists *lists, int32_t i)
{
    oracle_list_free(&lists->l[i]);
    for (; i + 1 < lists->n; i++) lists->l[i] = lists->l[i + 1];
    lists->n--;
}

bool oracle_lists_alike(const oracle_lists *a, const oracle_lists *b)
{
    bool same = a->n == b->n;
    for (int32_t i = 0; same && i < a->n; i++) same = oracle_alike(&a->l[i], &b->l[i]);
    return same;
}

void oracle_lists_free(oracle_lists *lists)
{
    for (int32_t i = 0; i < lists->n; i++) oracle_list_free(&lists->l[i]);
    free(lists->l);
    *lists = (oracle_lists){0};
}
