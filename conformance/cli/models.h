/* models.h - `assay models`: the models that the checks of engines ask about, for engines to load. */
#ifndef ASSAY_CONFORMANCE_CLI_MODELS_H
#define ASSAY_CONFORMANCE_CLI_MODELS_H

int models_main(int argc, char **argv);

#endif
