/* svg.h - the few marks that plots are drawn with. Coordinates are pixels, y downwards. */
#ifndef ASSAY_CONFORMANCE_SUITE_REPORT_SVG_H
#define ASSAY_CONFORMANCE_SUITE_REPORT_SVG_H

#include <libxml/xmlwriter.h>

void svg_open(xmlTextWriterPtr w, double width, double height); /* the element <svg> */
void svg_close(xmlTextWriterPtr w);
void svg_line(xmlTextWriterPtr w, double x1, double y1, double x2, double y2,
              const char *colour);
void svg_label(xmlTextWriterPtr w, double x, double y, const char *text);
void svg_disc(xmlTextWriterPtr w, double x, double y, double radius, const char *colour);

/* Opens an element, and gives it attributes, for what these do not draw. */
void svg_element(xmlTextWriterPtr w, const char *name);
void svg_number(xmlTextWriterPtr w, const char *attribute, double value);
void svg_text(xmlTextWriterPtr w, const char *attribute, const char *value);

#endif
