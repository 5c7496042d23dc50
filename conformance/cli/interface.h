/* interface.h - `assay interface`: the operations and claims of iut.h as the wire has them, from the tables that
 * client and worker run on. */
#ifndef ASSAY_CONFORMANCE_CLI_INTERFACE_H
#define ASSAY_CONFORMANCE_CLI_INTERFACE_H

int interface_main(int argc, char **argv);

#endif
