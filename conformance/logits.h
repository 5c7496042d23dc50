/* See logits.c. */
#ifndef ASSAY_CONFORMANCE_LOGITS_H
#define ASSAY_CONFORMANCE_LOGITS_H

int logits_main(int argc, char **argv);

#endif
