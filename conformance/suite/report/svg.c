#include "conformance/suite/report/svg.h"

void svg_element(xmlTextWriterPtr w, const char *name)
{
    xmlTextWriterStartElement(w, BAD_CAST name);
}

void svg_number(xmlTextWriterPtr w, const char *attribute, double value)
{
    xmlTextWriterWriteFormatAttribute(w, BAD_CAST attribute, "%.1f", value);
}

void svg_text(xmlTextWriterPtr w, const char *attribute, const char *value)
{
    xmlTextWriterWriteAttribute(w, BAD_CAST attribute, BAD_CAST value);
}

void svg_close(xmlTextWriterPtr w)
{
    xmlTextWriterFullEndElement(w);
}

void svg_open(xmlTextWriterPtr w, double width, double height)
{
    svg_element(w, "svg");
    svg_text(w, "xmlns", "http://www.w3.org/2000/svg");
    svg_number(w, "width", width);
    svg_number(w, "height", height);
}

void svg_line(xmlTextWriterPtr w, double x1, double y1, double x2, double y2,
              const char *colour)
{
    svg_element(w, "line");
    svg_number(w, "x1", x1);
    svg_number(w, "x2", x2);
    svg_number(w, "y1", y1);
    svg_number(w, "y2", y2);
    svg_text(w, "stroke", colour);
    svg_close(w);
}

void svg_label(xmlTextWriterPtr w, double x, double y, const char *text)
{
    svg_element(w, "text");
    svg_number(w, "x", x);
    svg_number(w, "y", y);
    xmlTextWriterWriteString(w, BAD_CAST text);
    svg_close(w);
}

void svg_disc(xmlTextWriterPtr w, double x, double y, double radius, const char *colour)
{
    svg_element(w, "circle");
    svg_number(w, "cx", x);
    svg_number(w, "cy", y);
    svg_number(w, "r", radius);
    svg_text(w, "fill", colour);
    svg_close(w);
}
