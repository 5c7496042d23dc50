/* xml.h - an XML writer on a file of our own, so that errno says why it cannot be written. */
#ifndef ASSAY_CONFORMANCE_SUITE_REPORT_XML_H
#define ASSAY_CONFORMANCE_SUITE_REPORT_XML_H

#include <libxml/xmlwriter.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
    FILE *file;
    xmlTextWriterPtr w;
} xml_file;

bool xml_open(xml_file *x, const char *path); /* false: nothing to close */
bool xml_close(xml_file *x);                  /* false: what was written is not whole */

#endif
