/* list.h - lists of tokens, and lists of such lists: all that the decoding methods of methods.h
 * are made of. A list grows by pushing and owns its memory; a zeroed one is empty. There is no
 * recovery from a lack of memory: the program says so and ends. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_LIST_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int32_t n, room;
    int32_t *t; /* [n] */
} oracle_list;

typedef struct {
    int32_t n, room;
    oracle_list *l; /* [n] */
} oracle_lists;

/* Zeroed memory; never NULL. */
void *oracle_take(size_t count, size_t size);

void oracle_push(oracle_list *list, int32_t token);
void oracle_append(oracle_list *list, const int32_t *t /* [n] */, int32_t n);
/* Removes the first min(k, n) tokens. */
void oracle_drop(oracle_list *list, int32_t k);
/* *to becomes a copy; it may be `from` itself. */
void oracle_copy(oracle_list *to, const oracle_list *from);
bool oracle_alike(const oracle_list *a, const oracle_list *b);
void oracle_list_free(oracle_list *list); /* leaves it empty */

/* A new empty list at the end; valid until the next one. */
oracle_list *oracle_another(oracle_lists *lists);
void oracle_add_copy(oracle_lists *lists, const oracle_list *list);
/* Removes list i; those behind it move up. */
void oracle_remove(oracle_lists *lists, int32_t i);
bool oracle_lists_alike(const oracle_lists *a, const oracle_lists *b);
void oracle_lists_free(oracle_lists *lists); /* leaves it empty */

#endif
