"""A server of `/v1/completions` that is right, or wrong in one way: the first part of the path names it. Right
answers are those of the example engine, with a draft model."""

import http.server
import json
import threading
import time
import types

import assay_iut
import assay_models
import example_generate

GAMMA = 3


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def do_POST(self):
        way = self.path.split("/")[1]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((way, self.path, dict(self.headers), asked))
        getattr(self, "way_" + way.replace("-", "_"))(asked)

    def say(self, status, data, more=(), length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def tokens(self, asked):
        """The stream and how it ended."""
        V, prompt, stop = 6, asked["prompt"], asked.get("stop", [])
        prompt = assay_models.tokens_of(V, prompt) if isinstance(prompt, str) else prompt
        s = types.SimpleNamespace(temperature=asked["temperature"], top_k=max(0, asked.get("top_k", -1)),
                                  top_p=asked.get("top_p", 1), min_p=asked.get("min_p", 0))
        penalties = assay_iut.Processors(*(asked.get(name + "_penalty", name == "repetition")
                                           for name in assay_iut.Processors._fields))
        eos = assay_models.tokens_of(V, stop[0])[0] if stop else -1
        few, fewer = self.server.models
        with self.server.lock:
            out, _ = self.server.engine.generate(few, fewer, [example_generate.np.array(prompt)], GAMMA,
                                                 asked["max_tokens"], eos, s, [asked["seed"]], [penalties])[0]
        return out, "stop" if stop and out[-1] == eos else "length"

    def answer(self, asked, cut=True, **other):
        out, why = self.tokens(asked)
        shown = out[:-1] if why == "stop" and cut else out
        choice = {"text": assay_models.text_of(6, shown), "finish_reason": why}
        choice.update(other.pop("choice", {}))
        whole = {"object": "text_completion", "choices": [choice], "usage": {"completion_tokens": len(out)}}
        return json.dumps(dict(whole, **other)).encode()

    # ---- Right, in several ways. ----

    def way_right(self, asked):
        self.say(200, self.answer(asked))

    def way_ids(self, asked):
        out, _ = self.tokens(asked)
        self.say(200, self.answer(asked, choice={"token_ids": out, "text": "not these"}))

    def way_keeps_stop(self, asked):
        self.say(200, self.answer(asked, cut=False))

    def way_without_usage(self, asked):
        self.say(200, self.answer(asked, usage=None))

    def way_busy_once(self, asked):
        self.server.busy += 1
        if self.server.busy % 10 == 1:
            self.say(429, b"slow down", [("Retry-After", "0")])
        else:
            self.way_right(asked)

    # ---- Wrong. ----

    def way_other_token(self, asked):
        out, _ = self.tokens(asked)
        out[0] = (out[0] + 1) % 6
        self.say(200, self.answer(asked, choice={"token_ids": out}))

    def way_one_less(self, asked):
        out, _ = self.tokens(asked)
        self.say(200, self.answer(asked, choice={"token_ids": out[:-1]}, usage={"completion_tokens": len(out) - 1}))

    def way_one_more(self, asked):
        out, _ = self.tokens(asked)
        self.say(200, self.answer(asked, choice={"token_ids": [*out, 0]}, usage={"completion_tokens": len(out) + 1}))

    def way_refuses(self, asked):
        self.say(400, b'{"error": "no such parameter"}')

    # ---- No evidence. ----

    def way_stalls(self, asked):
        time.sleep(30)

    def way_trickles(self, asked):
        self.say(200, b"", length=100)
        try:
            for _ in range(100):
                self.wfile.write(b" ")
                time.sleep(0.3)
        except OSError:
            pass

    def way_busy_long(self, asked):
        self.say(503, b"slow down", [("Retry-After", "9")])

    def way_busy(self, asked):
        self.say(429, b"slow down", [("Retry-After", "0")])

    def way_page(self, asked):
        self.say(200, b"<html><title>Welcome to the proxy</title></html>")

    def way_absent(self, asked):
        self.say(404, b'{"error": "no such model"}')

    def way_broken(self, asked):
        self.say(502, b"<html>bad gateway</html>")

    def way_cut_body(self, asked):
        data = self.answer(asked)
        self.say(200, data[: len(data) // 2], length=len(data))

    def way_cut_unnoticed(self, asked):
        data = self.answer(asked)
        self.say(200, data[: len(data) // 2])

    def way_closes(self, asked):
        self.close_connection = True

    def way_moved(self, asked):
        self.say(302, b"", [("Location", "http://127.0.0.1:9/elsewhere")])

    def way_tells_key(self, asked):
        self.say(401, b"wrong key: " + self.headers.get("Authorization", "").encode())

    def way_empty(self, asked):
        self.say(200, self.answer(asked, choice={"text": ""}, usage={"completion_tokens": 0}))

    def way_empty_stop(self, asked):
        self.say(200, self.answer(asked, choice={"text": "", "finish_reason": "stop"}, usage={"completion_tokens": 0}))

    def way_own_end(self, asked):
        out, _ = self.tokens(asked)
        self.say(200, self.answer(asked, choice={"token_ids": out[:2], "finish_reason": "stop"},
                                  usage={"completion_tokens": 2}))

    def way_short(self, asked):
        out, _ = self.tokens(asked)
        self.say(200, self.answer(asked, choice={"token_ids": out[:2]}))

    def way_other_letters(self, asked):
        out, _ = self.tokens(asked)
        self.say(200, self.answer(asked, choice={"text": "\N{LATIN SMALL LETTER E WITH ACUTE}" * len(out)}))

    def way_no_reason(self, asked):
        self.say(200, self.answer(asked, choice={"finish_reason": None}))

    def way_no_choices(self, asked):
        self.say(200, self.answer(asked, choices=[]))

    def way_error_in_200(self, asked):
        self.say(200, b'{"error": {"message": "overloaded"}}')


def serve(few, fewer):
    """A server on a port of its own; `seen` has the requests."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.models, server.engine, server.lock = (few, fewer), example_generate.Engine(), threading.Lock()
    server.seen, server.busy, server.daemon_threads = [], 0, True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
