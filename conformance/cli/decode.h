/* decode.h - `assay decode`: the reference's decoding methods on a prompt. */
#ifndef ASSAY_CONFORMANCE_CLI_DECODE_H
#define ASSAY_CONFORMANCE_CLI_DECODE_H

int decode_main(int argc, char **argv); /* argv[0] is "decode"; returns the exit code */

#endif
