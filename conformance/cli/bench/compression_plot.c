/* See compression_plot.h. */
#include "conformance/cli/bench/compression_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance/suite/report/svg.h"
#include "conformance/suite/report/xml.h"
#include "conformance/theory/lookahead.h"

enum { WIDTH = 270, HEIGHT = 190, LEFT = 34, TOP = 30, RIGHT = 60, BOTTOM = 40, ACROSS = 2 };

/* What all axes share, and where the axes being drawn begin. */
typedef struct {
    xmlTextWriterPtr w;
    double sizes, S; /* largest b and S shown */
    double x0, y0;
} canvas;

static double x_of(const canvas *c, double b)
{
    return c->x0 + LEFT + WIDTH * log(b) / log(c->sizes);
}

static double y_of(const canvas *c, double S)
{
    return c->y0 + TOP + HEIGHT * (1 - (S - 1) / (c->S - 1));
}

static const char *colour_of(int32_t N)
{
    static const char *const colour[] = {"#4a78b0", "#2c8a6a", "#c07818", "#b3201b", "#7a4a9a"};
    return colour[(N - 2) % 5];
}

static void number(const canvas *c, double x, double y, const char *format, double value)
{
    char text[32];
    snprintf(text, sizeof text, format, value);
    svg_label(c->w, x, y, text);
}

static void draw_frame(const canvas *c, const compression_axes *a)
{
    svg_label(c->w, c->x0 + LEFT, c->y0 + TOP - 12, a->title);
    for (double S = 1; S <= c->S; S += c->S > 4 ? 1 : 0.5) {
        svg_line(c->w, x_of(c, 1), y_of(c, S), x_of(c, c->sizes), y_of(c, S), "#ddd");
        number(c, c->x0 + 8, y_of(c, S) + 4, "%.1f", S);
    }
    for (int32_t i = 0; i < a->n; i++)
        if (a->point[i].N == a->point[0].N)
            number(c, x_of(c, a->point[i].b) - 4, y_of(c, 1) + 16, "%.0f", a->point[i].b);
    svg_label(c->w, x_of(c, 1), y_of(c, 1) + 32, "W = G");
}

static void draw_level(const canvas *c, double S, const char *name)
{
    svg_element(c->w, "line");
    svg_number(c->w, "x1", x_of(c, 1));
    svg_number(c->w, "x2", x_of(c, c->sizes));
    svg_number(c->w, "y1", y_of(c, S));
    svg_number(c->w, "y2", y_of(c, S));
    svg_text(c->w, "stroke", "#555");
    svg_text(c->w, "stroke-dasharray", "5 4");
    svg_close(c->w);
    svg_label(c->w, x_of(c, 1) + 8, y_of(c, S) - 4, name);
}

static void draw_curve(const canvas *c, const compression_model *m, int32_t N)
{
    char points[4096];
    size_t n = 0;
    for (int32_t b = 1; b <= (int32_t)c->sizes && n + 24 < sizeof points; b++)
        n += (size_t)snprintf(points + n, sizeof points - n, "%.1f,%.1f ", x_of(c, b),
                              y_of(c, theory_lookahead(m->alpha, m->f, N, b)));
    svg_element(c->w, "polyline");
    svg_text(c->w, "points", points);
    svg_text(c->w, "fill", "none");
    svg_text(c->w, "stroke", colour_of(N));
    svg_close(c->w);
}

/* Beside the axes, in the order of N from below. */
static void draw_key(const canvas *c, int32_t N)
{
    const double x = x_of(c, c->sizes) + 12, y = y_of(c, 1) - 18 * (N - 1);
    svg_disc(c->w, x, y, 3.5, colour_of(N));
    number(c, x + 7, y + 4, "N = %.0f", N);
}

static void draw_axes(const canvas *c, const compression_axes *a)
{
    draw_frame(c, a);
    for (int i = 0; i < PLOT_LEVELS; i++) draw_level(c, a->level[i].S, a->level[i].name);
    for (int32_t i = 0; i < a->n; i++) {
        const compression_point *p = &a->point[i];
        svg_disc(c->w, x_of(c, p->b), y_of(c, p->S), 3.5, colour_of(p->N));
        if (p->b != (int32_t)c->sizes) continue;
        draw_curve(c, &a->model, p->N);
        draw_key(c, p->N);
    }
}

static canvas canvas_of(const compression_axes *a, int32_t n)
{
    canvas c = {NULL, 2, 2, 0, 0};
    for (int32_t i = 0; i < n; i++) {
        for (int j = 0; j < PLOT_LEVELS; j++) c.S = fmax(c.S, a[i].level[j].S);
        for (int32_t j = 0; j < a[i].n; j++) {
            c.S = fmax(c.S, a[i].point[j].S);
            c.sizes = fmax(c.sizes, a[i].point[j].b);
        }
    }
    c.S = 1 + ceil(2 * (c.S - 1)) / 2;
    return c;
}

bool compression_plot(const char *file, const compression_axes *a, int32_t n)
{
    const double wide = LEFT + WIDTH + RIGHT, high = TOP + HEIGHT + BOTTOM;
    canvas c = canvas_of(a, n);
    xml_file x;
    if (!xml_open(&x, file)) return false;
    c.w = x.w;
    svg_open(x.w, ACROSS * wide, high * ceil((double)n / ACROSS));
    svg_text(x.w, "font-family", "system-ui,sans-serif");
    svg_text(x.w, "font-size", "11");
    svg_element(x.w, "rect"); /* a ground of its own, for pages that are dark */
    svg_text(x.w, "width", "100%");
    svg_text(x.w, "height", "100%");
    svg_text(x.w, "fill", "#fff");
    svg_close(x.w);
    for (int32_t i = 0; i < n; i++) {
        c.x0 = wide * (i % ACROSS), c.y0 = high * (double)(i / ACROSS);
        draw_axes(&c, &a[i]);
    }
    svg_close(x.w);
    return xml_close(&x);
}
