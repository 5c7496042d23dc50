#!/usr/bin/env python3
"""Puts a server that speaks OpenAI's `/v1/completions` under test, such as vLLM, SGLang, TGI or llama.cpp's.

    assay models export FOLDER               models for the server to load; start it with FOLDER/few
    assay run --only 'engine.*' --level smoke --iut exec:"python3 openai_http.py few=http://127.0.0.1:8000/v1"

NAME=URL says which model is served where: few, draft or target, as `assay models export` names them. A server has its
drafts switched on when it starts, so a request's gamma is the server's affair; `--plain` names servers without drafts.
Say --order llamacpp for llama.cpp's server, which has its temperature last.
Prompts go as ids, or with --text as text. Answers are read from `token_ids` where the server tells them, else from
the text, whose characters are the tokens: six ids are six letters, and bytes are ASCII. The server's own end of
sequence is switched off (--body). A key is read from the environment's OPENAI_API_KEY and is never told.

What is no whole answer is no evidence: no connection, a stop within a body, a page of HTML, too many requests (after
five attempts) make the case UNAVAILABLE. So does an answer with fewer tokens than its own count, and a server that
takes longer than --within for the requests of one call. Where it needs more, raise the suite's --timeout as well: past
that limit the suite knows of no server, and the case is a TIMEOUT, which fails.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import socket
import ssl
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import assay_iut
import assay_models

KEY = "OPENAI_API_KEY"
ATTEMPTS, MOST_WAIT, MOST_BODY = 5, 10, 1 << 26


def unavailable(text):
    """The error for what is no evidence, in one line without the key."""
    key = os.environ.get(KEY)
    return assay_iut.Unavailable(" ".join((text.replace(key, "***") if key else text).split())[:300])


def exchange(url, body, due):
    """Status, headers and body of the reply to a POST, cut off at `due`, which is seconds of time.monotonic() or None.
    Redirects are not followed: the key is not for others."""
    at = urllib.parse.urlsplit(url)
    connect = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if os.environ.get(KEY):
        headers["Authorization"] = f"Bearer {os.environ[KEY]}"
    left = None if due is None else max(0, due - time.monotonic())
    connection, watch = connect(at.hostname, at.port, timeout=left), None
    try:
        connection.connect()
        if left is not None:  # a timeout is for each read, and a server may send a byte at a time
            watch = threading.Timer(left, connection.sock.shutdown, [socket.SHUT_RDWR])
            watch.start()
        connection.request("POST", at.path, json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read(MOST_BODY)
    finally:
        if watch:
            watch.cancel()
        connection.close()


def post(url, body, due=None):
    """The JSON object that a server answers. Unavailable: there is no whole one, or none by `due`. Unsupported: it
    refuses."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            status, headers, data = exchange(url, body, due)
        except (OSError, http.client.HTTPException, ssl.SSLError) as error:
            late = due is not None and time.monotonic() >= due
            why = "no whole answer within the seconds of a call" if late else f"{type(error).__name__}: {error}"
            raise unavailable(f"{url}: {why}") from None
        if status not in (429, 503) or attempt == ATTEMPTS:
            break
        wait = headers.get("Retry-After", "")
        wait = min(int(wait) if wait.isdigit() else attempt, MOST_WAIT)
        time.sleep(wait if due is None else max(0, min(wait, due - time.monotonic())))
    text = data.decode("utf-8", "replace")
    if status in (400, 413, 422):
        raise assay_iut.Unsupported(str(unavailable(f"{url}: status {status}: {text}")))
    if status != 200:
        raise unavailable(f"{url}: status {status}: {text}")
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise unavailable(f"{url}: no JSON object but {text[:80]!r}")
    return answer


class Server:
    """One model behind one URL."""

    def __init__(self, url, options):
        self.url, self.options = url.rstrip("/") + "/completions", options

    def ask(self, V, prompt, k, eos, sampling, seed, penalties, due):
        body = {"model": self.options.model, "max_tokens": k, "temperature": sampling.temperature, "seed": seed % 2**31,
                "prompt": assay_models.text_of(V, prompt) if self.options.text else prompt}
        if sampling.temperature > 0:
            body.update(top_p=sampling.top_p, top_k=sampling.top_k or -1, min_p=sampling.min_p)
        if eos >= 0:
            body["stop"] = [assay_models.text_of(V, [eos])]
        body.update({name + "_penalty": value for name, value in penalties.items()})
        body.update(self.options.body)
        return self.tokens(V, k, eos, post(self.url, body, due))

    def tokens(self, V, k, eos, answer):
        """The tokens of an answer that says of itself that it is whole."""
        try:
            choice, count = answer["choices"][0], (answer.get("usage") or {}).get("completion_tokens")
            why, text, ids = choice.get("finish_reason"), choice.get("text"), choice.get("token_ids")
            tokens = list(map(int, ids)) if ids is not None else assay_models.tokens_of(V, text)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise unavailable(f"{self.url}: no completion: {type(error).__name__}: {json.dumps(answer)}") from None
        except ValueError as error:
            raise unavailable(f"{self.url}: {error}: {text!r}") from None
        if not tokens and not count:
            raise unavailable(f"{self.url}: an empty completion, where it counts {count}")
        if why == "stop" and eos >= 0 and eos not in tokens and len(tokens) < k:
            tokens.append(eos)  # servers cut it off
        elif why == "stop" and eos not in tokens:
            raise unavailable(f"{self.url}: it ended a text by itself after {len(tokens)} tokens: forbid its own end")
        elif why not in ("stop", "length"):
            raise unavailable(f"{self.url}: finish_reason is {why!r}")
        whole = len(tokens) == k or tokens[-1:] == [eos]
        if not whole and count != len(tokens):
            raise unavailable(f"{self.url}: {len(tokens)} tokens of {k}, where it counts {count}")
        return tokens


class Engine:
    def __init__(self, options):
        self.options = options
        self.drafting = {name: Server(url, options) for name, url in options.servers}
        self.plain = dict(self.drafting, **{name: Server(url, options) for name, url in options.plain})

    def generate(self, target, draft, prompts, gamma, k, eos, sampling, seeds, processors=None):
        name = os.path.basename(target).partition("-")[0]
        servers = self.drafting if gamma > 0 else self.plain
        if name not in servers:
            raise assay_iut.Unsupported(f"no server was named for the model {name}")
        V, due = assay_models.config_of(target)["vocab_size"], time.monotonic() + self.options.within
        asked = [{kind: getattr(p, kind) for kind in self.options.penalties.split()
                  if getattr(p, kind) != (kind == "repetition")} for p in processors or []]

        def one(prompt, seed, penalties):
            try:
                return servers[name].ask(V, prompt.tolist(), k, eos, sampling, seed, penalties, due), None
            except ValueError as error:
                raise assay_iut.Unsupported(f"as text: {error}") from None

        with concurrent.futures.ThreadPoolExecutor(self.options.parallel) as pool:
            return list(pool.map(one, prompts, seeds, asked or [{}] * len(prompts)))


def named(text):
    name, equals, url = text.partition("=")
    known = name in ("few", "draft", "target") and urllib.parse.urlsplit(url).scheme in ("http", "https")
    if not known or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not few=URL, draft=URL or target=URL")
    return name, url


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("servers", metavar="NAME=URL", nargs="+", type=named, help="up to and with /v1")
    parser.add_argument("--plain", metavar="NAME=URL", action="append", default=[], type=named, help="without drafts")
    parser.add_argument("--model", default="assay", help="as the server calls it")
    parser.add_argument("--text", action="store_true", help="prompts go as text; those of 258 tokens cannot")
    parser.add_argument("--parallel", type=int, default=1, help="requests at once")
    parser.add_argument("--within", type=float, default=8, metavar="SECONDS", help="for a call; less than --timeout")
    parser.add_argument("--rule", default="token", help="acceptance rule that is claimed")
    parser.add_argument("--arithmetic", help="of the network; f16 and bf16 leave the law unclaimed "
                        "(default: f32, of own weights bf16)")
    parser.add_argument("--order", help="of temperature and filters: llamacpp, vllm, mlx ...")
    parser.add_argument("--ties", choices=["cut", "kept"], default="cut", help="at the k-th of top-k: k tokens, or all")
    parser.add_argument("--weights", choices=["folder", "own"], default="folder", help="own: quantised, say")
    parser.add_argument("--max-gamma", type=int, default=0, help="drafts a step that the server may make")
    parser.add_argument("--penalties", default="", help="that the server takes: repetition presence frequency")
    parser.add_argument("--body", type=json.loads, default={"ignore_eos": True, "return_token_ids": True},
                        help="JSON that each request has besides")
    options = parser.parse_args()
    limits = {"max_gamma": options.max_gamma} if options.max_gamma else {}
    # Quantised weights are seldom multiplied in binary32 alone: activations are rounded, too.
    arithmetic = options.arithmetic or ("bf16" if options.weights == "own" else "f32")
    claims = {"order": options.order} if options.order else {}
    claims.update(top_k_ties=options.ties, weights=options.weights)
    if {name for name, _ in options.servers} == {"few"}:
        limits["max_vocab"] = 6
    if options.penalties:
        limits["processors"] = options.penalties
    assay_iut.serve(Engine(options), name="openai_http", version="1", uniforms="own", rule=options.rule, map="other",
                    arithmetic=arithmetic, input="logits", lm_architectures="llama", models="exported",
                    **claims, **limits)
