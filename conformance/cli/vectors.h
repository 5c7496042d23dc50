/* vectors.h - `assay vectors`: list, show, check, generate or flip the golden vectors. */
#ifndef ASSAY_CONFORMANCE_CLI_VECTORS_H
#define ASSAY_CONFORMANCE_CLI_VECTORS_H

int vectors_main(int argc, char **argv);

#endif
