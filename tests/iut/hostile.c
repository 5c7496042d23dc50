/* An implementation that misbehaves in one chosen way: `hostile MODE [FILE]`. It answers claims
 * and panel properly unless the mode is about them, and misbehaves at the first other call.
 * FILE marks that it has done so once; with it the misbehaviour is not repeated. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "conformance/wire/claims.h"
#include "conformance/wire/frames.h"
#include "conformance/wire/worker.h"

enum { MOST = 1 << 16 }; /* tokens of a call */

static const char *mode;
static bool has_panel;

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void say(const void *bytes, size_t size)
{
    if (write(1, bytes, size) != (ssize_t)size) exit(9);
}

static void hang(void)
{
    for (;;) pause();
}

/* The prefix of a frame that announces these sizes. */
static void say_prefix(uint64_t length, uint32_t header)
{
    say(&length, sizeof length);
    say(&header, sizeof header);
}

static void say_header(const char *json, uint64_t payload)
{
    say_prefix(4 + strlen(json) + payload, (uint32_t)strlen(json));
    say(json, strlen(json));
}

static void say_claims(int64_t id, bool again)
{
    iut_claims c = {.size = sizeof c, .name = "hostile", .version = "1", .device = "cpu"};
    if ((is("other_claims") || is("other_device")) && again) c.version = "2", c.device = "cuda:1";
    if (is("other_claims") && again) c.max_gamma = 3;
    json_t *args = claims_encode(&c, 1u << OP_PANEL | 1u << OP_DRAW | 1u << OP_VERIFY, CLAIMS_SINCE);
    if (is("claims_value")) json_object_set_new(args, "rule", json_integer(17));
    if (is("claims_type")) json_object_set_new(args, "rule", json_string("token"));
    if (is("claims_field")) json_object_set_new(args, "colour", json_integer(1));
    if (is("claims_ops")) json_object_set_new(args, "ops", json_string("panel fly"));
    if (is("claims_no_ops")) json_object_del(args, "ops");
    if (is("claims_no_name")) json_object_del(args, "name");
    if (is("claims_bits"))
        json_object_set_new(args, "arithmetic", json_integer(IUT_ARITH_CANONICAL));
    const frame reply = {.id = id,
                         .version = is("start_version") ? FRAME_VERSION + 1 : FRAME_VERSION,
                         .status = "ok",
                         .args = args};
    frame_write(1, &reply);
    json_decref(args);
}

/* A right answer to a draw of n tokens: all of them 0, or 1 if a panel came before. */
static void say_tokens(int64_t id, int32_t n)
{
    static int32_t token[MOST];
    for (int32_t i = 0; i < n; i++) token[i] = has_panel;
    const frame reply = {.id = id,
                         .status = "ok",
                         .tensors = 1,
                         .tensor = {{"token", TENSOR_I32, 1, {n}, 4 * (size_t)n, token}}};
    frame_write(1, &reply);
}

static void chatter(void)
{
    static char line[1 << 16];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 40; i++)
        if (write(2, line, sizeof line) < 0) exit(9);
    if (write(2, "the end\n", 8) < 0) exit(9);
}

/* True if this answered the request in a way that leaves the stream intact. */
static bool misbehave(int64_t id, int32_t n)
{
    char text[200];
    snprintf(text, sizeof text,
             "{\"id\":%lld,\"status\":\"ok\",\"tensors\":[[\"token\",\"i32\",[%d]]]}",
             (long long)id, (int)n);
    if (is("crash")) fprintf(stderr, "about to fail\n"), raise(SIGSEGV);
    if (is("abort")) abort();
    if (is("shell_crash")) exit(128 + SIGSEGV);
    if (is("exit")) fprintf(stderr, "first line\nno licence\n\n"), exit(3);
    if (is("exit_0")) exit(0);
    if (is("input_written")) exit(WORKER_INPUT_WRITTEN);
    if (is("hang")) hang();
    if (is("close")) close(1), hang();
    if (is("text")) say("Segmentation fault\n", 19), hang();
    if (is("print_first")) say("hello\n", 6), say_tokens(id, n);
    if (is("wrong_id")) say_tokens(id + 1, n);
    if (is("wrong_shape")) say_tokens(id, n - 1);
    if (is("too_much")) { /* in one write, so that all of it is there at once */
        static char bytes[4 * MOST + 512];
        const uint64_t length = 4 + strlen(text) + 4 * (uint64_t)n;
        const uint32_t header = (uint32_t)strlen(text);
        memcpy(bytes, &length, 8);
        memcpy(bytes + 8, &header, 4);
        memcpy(bytes + FRAME_PREFIX, text, header);
        say(bytes, 8 + length + 4), hang();
    }
    if (is("late")) say_tokens(id, n), say("more", 4), hang();
    if (is("half")) say_header(text, 4 * (uint64_t)n), say("1234", 4), exit(0);
    if (is("half_hang")) say_header(text, 4 * (uint64_t)n), say("1234", 4), hang();
    if (is("half_header")) say_prefix(100, 80), say("{\"id\"", 5), exit(4);
    if (is("huge")) say_prefix(UINT64_C(1) << 60, 60), hang();
    if (is("header_huge")) say_prefix(UINT64_C(1) << 30, 1 << 29), hang();
    if (is("json")) say_header("{\"id\":1,", 0), hang();
    if (is("sizes")) say_header(text, 4), hang();
    if (is("status")) {
        const frame reply = {.id = id, .status = "splendid"};
        frame_write(1, &reply);
    }
    if (is("no_error")) {
        const frame reply = {.id = id, .status = "failed"};
        frame_write(1, &reply);
    }
    if (is("request")) {
        const frame reply = {.id = id, .op = "draw"};
        frame_write(1, &reply);
    }
    if (is("refuse")) {
        fprintf(stderr, "the driver is too old\n  in line 3\nno card\n");
        const frame reply = {.id = id, .status = "no_device", .error = "no card\nin slot 3"};
        return frame_write(1, &reply);
    }
    if (is("refuse_lying")) {
        const frame reply = {.id = id, .status = "failed", .error = "refused: no_device: no"};
        return frame_write(1, &reply);
    }
    if (is("type")) {
        static const float token[MOST];
        const frame reply = {.id = id,
                             .status = "ok",
                             .tensors = 1,
                             .tensor = {{"token", TENSOR_F32, 1, {n}, 4 * (size_t)n, token}}};
        frame_write(1, &reply);
    }
    if (is("no_tensor") || is("extra_tensor")) {
        static const int32_t token[MOST];
        const frame_tensor t = {"token", TENSOR_I32, 1, {n}, 4 * (size_t)n, token};
        const frame reply = {
            .id = id, .status = "ok", .tensors = is("no_tensor") ? 0 : 2, .tensor = {t, t}};
        frame_write(1, &reply);
    }
    if (is("chatter")) chatter();
    if (is("chatter_exit")) chatter(), exit(5);
    if (is("deaf")) close(0), exit(6);
    return false;
}

/* With a FILE only the first process misbehaves. */
static bool first_time(const char *file)
{
    if (!file) return true;
    if (access(file, F_OK) == 0) return false;
    FILE *f = fopen(file, "w");
    if (f) fclose(f);
    return true;
}

static frame_reader input; /* standard input */

static bool read_request(frame *f)
{
    static char head[FRAME_MAX_HEADER];
    char why[200], part[4096];
    uint8_t prefix[FRAME_PREFIX];
    size_t header, payload;
    if (frame_read_exact(&input, prefix, sizeof prefix) != 1 ||
        !frame_prefix(prefix, &header, &payload, why, sizeof why) ||
        frame_read_exact(&input, head, header) != 1 ||
        !frame_head(head, header, payload, f, why, sizeof why))
        return false;
    if (is("deaf") && strcmp(f->op, "draw") == 0)
        return true; /* answers with the rest unread */
    for (size_t n; payload; payload -= n) {
        n = payload < sizeof part ? payload : sizeof part;
        if (frame_read_exact(&input, part, n) != 1) return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    mode = argv[1];
    if (is("start_exit")) fprintf(stderr, "cannot open the model\n"), exit(7);
    if (is("start_crash")) raise(SIGBUS);
    if (is("start_input_written")) exit(WORKER_INPUT_WRITTEN);
    if (is("start_hang")) hang();
    if (is("start_text")) say("Loading weights...\n", 19);
    const char *file = argc > 2 ? argv[2] : NULL;
    const bool again = file && access(file, F_OK) == 0;
    for (frame f; read_request(&f); frame_release(&f)) {
        int64_t n = 0;
        if (strcmp(f.op, "claims") == 0 && (is("claims_no_device") || is("claims_failed"))) {
            const frame reply = {.id = f.id,
                                 .status = mode + strlen("claims_"),
                                 .error = "hostile: refused: no_device: says the text"};
            frame_write(1, &reply);
        } else if (f.version == FRAME_VERSION + 1 && !is("start_any_version")) {
            const frame reply = {.id = f.id,
                                 .status = is("start_other_word") ? "failed" : "unsupported",
                                 .error = "of another version"};
            frame_write(1, &reply);
        } else if (strcmp(f.op, "claims") == 0) {
            say_claims(f.id, again);
        } else if (strcmp(f.op, "panel") == 0) {
            const frame reply = {.id = f.id, .status = "ok"};
            has_panel = true;
            frame_write(1, &reply);
        } else {
            frame_integer(&f, "n", 0, MOST, &n);
            if (!first_time(file) || !misbehave(f.id, (int32_t)n)) say_tokens(f.id, (int32_t)n);
        }
    }
    return 0;
}
