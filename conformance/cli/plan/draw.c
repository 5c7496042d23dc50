/* draw.c - tables as curves (table.h): axes for each table, a curve for each column that is one. */
#include <math.h>
#include <stdio.h>

#include "conformance/cli/plan/table.h"
#include "conformance/suite/report/svg.h"
#include "conformance/suite/report/xml.h"

enum { WIDTH = 330, HEIGHT = 210, LEFT = 44, TOP = 30, RIGHT = 130, BOTTOM = 40, LINES = 5 };

/* Axes being drawn: where they begin, and what they show. */
typedef struct {
    xmlTextWriterPtr w;
    const table *t;
    double y0, x_low, x_high, high; /* the ordinate begins at 0 */
} canvas;

static bool draws(const table *t)
{
    for (int32_t k = 1; k < t->columns; k++)
        if (t->column[k].curve && t->rows > 1) return true;
    return false;
}

static double scale(const canvas *c, double x)
{
    return c->t->logarithmic ? log(x) : x;
}

static double x_of(const canvas *c, double x)
{
    const double low = scale(c, c->x_low), high = scale(c, c->x_high);
    return LEFT + WIDTH * (scale(c, x) - low) / (high - low);
}

static double y_of(const canvas *c, double y)
{
    return c->y0 + TOP + HEIGHT * (1 - y / c->high);
}

/* 1, 2 or 5 times a power of ten, so that about LINES of it reach x. */
static double step_of(double x)
{
    const double rough = x / LINES, power = pow(10, floor(log10(rough)));
    return power * (rough < 2 * power ? 2 : rough < 5 * power ? 5 : 10);
}

static void label(const canvas *c, double x, double y, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", value);
    svg_label(c->w, x, y, text);
}

static void draw_frame(const canvas *c)
{
    const table *t = c->t;
    const double step = step_of(c->high);
    svg_label(c->w, LEFT, c->y0 + TOP - 12, t->title);
    for (double y = 0; y <= c->high * (1 + 1e-9); y += step) {
        svg_line(c->w, LEFT, y_of(c, y), LEFT + WIDTH, y_of(c, y), "#ddd");
        label(c, 8, y_of(c, y) + 4, y);
    }
    const int32_t every = 1 + (t->rows - 1) / 12;
    for (int32_t i = 0; i < t->rows; i += every) label(c, x_of(c, t->cell[i][0]) - 4, y_of(c, 0) + 16, t->cell[i][0]);
    svg_label(c->w, LEFT, y_of(c, 0) + 32, t->column[0].name);
}

static void draw_curve(const canvas *c, int32_t column)
{
    static const char *const colour[] = {"#4a78b0", "#2c8a6a", "#c07818", "#b3201b", "#7a4a9a"};
    const char *const of = colour[column % 5];
    const table *t = c->t;
    double x = 0, y = 0;
    bool begun = false;
    for (int32_t i = 0; i < t->rows; i++) {
        const double value = t->cell[i][column];
        if (!isfinite(value)) continue;
        const double to_x = x_of(c, t->cell[i][0]), to_y = y_of(c, value);
        if (begun) svg_line(c->w, x, y, to_x, to_y, of);
        svg_disc(c->w, to_x, to_y, 2.5, of);
        x = to_x, y = to_y, begun = true;
    }
    const double key = c->y0 + TOP + 16 * column;
    svg_disc(c->w, LEFT + WIDTH + 14, key - 4, 3.5, of);
    svg_label(c->w, LEFT + WIDTH + 22, key, t->column[column].name);
}

static canvas canvas_of(xmlTextWriterPtr w, const table *t, double y0)
{
    canvas c = {w, t, y0, t->cell[0][0], t->cell[0][0], 0};
    for (int32_t i = 0; i < t->rows; i++) {
        c.x_low = fmin(c.x_low, t->cell[i][0]), c.x_high = fmax(c.x_high, t->cell[i][0]);
        for (int32_t k = 1; k < t->columns; k++)
            if (t->column[k].curve && isfinite(t->cell[i][k])) c.high = fmax(c.high, t->cell[i][k]);
    }
    if (!(c.high > 0)) c.high = 1;
    c.high = step_of(c.high) * ceil(c.high / step_of(c.high) - 1e-9);
    return c;
}

bool tables_draw(const table_list *list, const char *file)
{
    const double high = TOP + HEIGHT + BOTTOM;
    xml_file x;
    int32_t count = 0;
    for (int32_t i = 0; i < list->count; i++) count += draws(&list->of[i]);
    if (!xml_open(&x, file)) return false;
    svg_open(x.w, LEFT + WIDTH + RIGHT, high * count);
    svg_text(x.w, "font-family", "system-ui,sans-serif");
    svg_text(x.w, "font-size", "11");
    svg_element(x.w, "rect"); /* a ground of its own, for pages that are dark */
    svg_text(x.w, "width", "100%");
    svg_text(x.w, "height", "100%");
    svg_text(x.w, "fill", "#fff");
    svg_close(x.w);
    for (int32_t i = 0, at = 0; i < list->count; i++) {
        if (!draws(&list->of[i])) continue;
        const canvas c = canvas_of(x.w, &list->of[i], high * at++);
        draw_frame(&c);
        for (int32_t k = 1; k < c.t->columns; k++)
            if (c.t->column[k].curve) draw_curve(&c, k);
    }
    svg_close(x.w);
    return xml_close(&x);
}
