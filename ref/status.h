/* status.h - how every function of the reference says that it could not do its work.
 *
 * A function that can fail returns an as_status and, when the caller passes a non-NULL
 * as_error, fills it with one sentence that says what is wrong, where, and what to do about
 * it. The sentence is for people: programs decide by the status and by `about`. */
#ifndef ASSAY_REF_STATUS_H
#define ASSAY_REF_STATUS_H

typedef enum {
    AS_OK,
    AS_BAD_INPUT, /* an argument breaks the contract of the function */
    AS_NO_MEMORY, /* an allocation failed; nothing was changed */
    AS_LIMIT,     /* the request is well formed, but beyond a stated limit */
    AS_DEVICE,    /* a device is needed, and is absent or has failed */
    AS_PEER       /* a process that shares the work is silent, or differs */
} as_status;

typedef struct {
    char text[240];
    const char
        *about; /* the word for what was refused: "temperature", "prompt", "W"; else "" */
} as_error;

#if defined(__GNUC__)
#define AS_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define AS_PRINTF(format_at, first_at)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Fills e (which may be NULL) as printf would, truncating, with the word "", and returns s. */
as_status as_fail(as_error *e, as_status s, const char *format, ...) AS_PRINTF(3, 4);

/* The same with a word of static duration for what was refused. */
as_status as_refuse(as_error *e, as_status s, const char *about, const char *format, ...)
    AS_PRINTF(4, 5);

#ifdef __cplusplus
}
#endif

#endif
