/* cache.h - keys and values on the device (KV-01 to KV-07), and where the rows of a forward
 * stand behind them (TREE-02, TREE-03).
 *
 * Committed positions lie in pages of 64, laid out as the reference's: for each layer and KV
 * head a chunk of keys [d][64], so that threads side by side own positions, and one of values
 * [64][wide], so that they own dimensions. A table gives the pages of each sequence. Rows wait
 * outside of the pages until they are committed: row i of a forward, counted over all its
 * sequences, in slot i of its own sequence, so that the rows of sequences that the next forward
 * does not name stay.
 *
 * Everything here works on what the device holds, lengths and tables included: nothing waits,
 * nothing is allocated, nothing is checked. Callers see to it that rows and paths are right. */
#ifndef ASSAY_GPU_LM_CACHE_H
#define ASSAY_GPU_LM_CACHE_H

#include <stdint.h>
#include "gpu/device/device.h"
#include "ref/num/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AG_TILE = 128 }; /* rows that go through the layers together, at most */

/* All but the numbers lies on the device. */
typedef struct {
    int32_t layers, kv_heads, d;
    int32_t wide; /* d rounded up to a multiple of 4, so that 16 bytes can be loaded */
    int32_t sequences, pages /* of a sequence */, row_limit;
    float *pool;    /* [sequences pages] pages of [layers][kv_heads] chunks */
    int32_t *table; /* [sequences][pages] the page of the pool with positions 64i .. 64i + 63 */
    int32_t *length; /* [sequences] committed positions */
    float *waiting;  /* [layers][2][sequences][row_limit][kv_heads][wide]: keys after rotation,
                        values */
} ag_cache;

/* The rows of a forward. parent is -1 for the prefix or the number of an earlier row of the
 * same sequence; a row of sequence -1 is not there. */
typedef struct {
    int32_t rows;
    const int32_t *token, *parent, *sequence; /* [rows] */
    int32_t *position;                        /* [rows] -1 for a row that is not there */
    int32_t *end;  /* [rows] the nearest ancestor at the end of a chunk of 64; -1: none */
    int32_t *seat; /* [rows][64] of the chunk in which a row stands, up to it: which row has the
                      place, -1 where it is the prefix's */
} ag_rows;

/* Consecutive rows of one sequence, counted in their tile. */
typedef struct {
    int32_t first, rows;
} ag_run;

/* Paths of several sequences to commit. */
typedef struct {
    int32_t paths, most;
    const int32_t *sequence; /* [paths] all different, -1: none */
    const int32_t *rows;     /* [paths] how many, at most `most` */
    const int32_t *row;      /* [paths][most] */
} ag_paths;

/* Floats of a chunk, of a page, of all waiting rows. */
int64_t ag_chunk_floats(const ag_cache *c);
int64_t ag_page_floats(const ag_cache *c);
int64_t ag_waiting_floats(const ag_cache *c);

/* From token, parent and sequence: position, end and seat. */
as_status ag_place_rows(const ag_device *d, const ag_cache *c, const ag_rows *r, as_error *e);

/* Cuts a tile of rows (their sequences [rows], at most AG_TILE) into runs of at most `most`.
 * run is [rows], *runs their number. */
as_status ag_find_runs(const ag_device *d, const int32_t *sequence, int32_t rows, int32_t most,
                       ag_run *run, int32_t *runs, as_error *e);

/* Copies the rows of the paths behind their prefixes, whose pages are in the table, and adds
 * to the lengths (KV-01, KV-02). */
as_status ag_commit_rows(const ag_device *d, const ag_cache *c, const ag_paths *p, as_error *e);

/* The key and the value [2][kv_heads][wide] of a committed position. */
as_status ag_read_position(const ag_device *d, const ag_cache *c, int32_t layer, int32_t page,
                           int32_t place, float *to, as_error *e);

/* NaN for all of a page from place `from` on. */
as_status ag_spoil_page(const ag_device *d, const ag_cache *c, int32_t page, int32_t from,
                        as_error *e);

#ifdef __cplusplus
}
#endif
#endif
