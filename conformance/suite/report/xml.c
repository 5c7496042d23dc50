#include "conformance/suite/report/xml.h"

bool xml_open(xml_file *x, const char *path)
{
    x->file = fopen(path, "w");
    if (!x->file) return false;
    xmlOutputBufferPtr buffer = xmlOutputBufferCreateFile(x->file, NULL);
    x->w = buffer ? xmlNewTextWriter(buffer) : NULL; /* owns the buffer, not the file */
    if (!x->w) {
        fclose(x->file);
        return false;
    }
    xmlTextWriterSetIndent(x->w, 1);
    return true;
}

bool xml_close(xml_file *x)
{
    const bool ended = xmlTextWriterEndDocument(x->w) >= 0;
    xmlFreeTextWriter(x->w);
    const bool failed = ferror(x->file);
    return fclose(x->file) == 0 && ended && !failed;
}
