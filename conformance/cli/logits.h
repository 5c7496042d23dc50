/* See logits.c. */
#ifndef ASSAY_CONFORMANCE_CLI_LOGITS_H
#define ASSAY_CONFORMANCE_CLI_LOGITS_H

int logits_main(int argc, char **argv);

#endif
