/* subject.h - an implementation that is a file of traces and nothing else: `--iut
 * traces:FILE`. It claims no operation; what the file holds is judged by trace.methods. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_TRACES_SUBJECT_H
#define ASSAY_CONFORMANCE_SUBJECTS_TRACES_SUBJECT_H

#include "conformance/iut.h"

const iut_api *traces_alone_api(void);

#endif
