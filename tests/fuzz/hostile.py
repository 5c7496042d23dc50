#!/usr/bin/env python3
"""Hostile surroundings for the real program: plugins, programs, vectors, waivers, models and outputs
that are wrong in one way each. Every case must give the exit code of VER-01 and a message that
names what is wrong, report every planned case (VER-02), and leave the rest to pass.

    hostile.py ASSAY HOSTILE PLUGINS EXAMPLES VECTORS

HOSTILE is the misbehaving program of tests/iut, PLUGINS the folder of its plugins, EXAMPLES the
worked adapters in Python, VECTORS the golden vectors.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

ASSAY, HOSTILE, PLUGINS, EXAMPLES, VECTORS = sys.argv[1:6]
OK, NOT_CONFORMANT, USAGE, ERROR = 0, 1, 2, 3
failures = []


def call(argv, stdin=b""):
    """Exit code and all output. A signal gives a negative code, a hang none."""
    try:
        done = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120)
    except subprocess.TimeoutExpired:
        return None, "hangs"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def expect(name, condition, detail):
    if not condition:
        failures.append(name)
        print(f"FAILED {name}\n{detail}")


def run(name, options, code, says, states=None):
    """`assay run`: its exit code, texts in its output, how many cases ended in which state. Of an
    implementation that did not open, the states of the findings."""
    report = os.path.join(folder, "report.json")
    if os.path.exists(report):
        os.remove(report)
    got, text = call([ASSAY, "run", "--level", "smoke", "--json", report] + options)
    detail = f"  options {options}\n  exit code {got}, due {code}\n{text}"
    expect(name, got == code and "Sanitizer" not in text, detail)
    for part in says:
        expect(name, part in text, f"  does not say: {part}\n{detail}")
    if states is not None:
        seen = {}
        if os.path.exists(report):
            with open(report, encoding="utf-8") as f:
                result = json.load(f)
                for case in result["cases"] or result["findings"]:
                    seen[case["state"]] = seen.get(case["state"], 0) + 1
        expect(name, seen == states, f"  states {seen}, due {states}\n{detail}")


ROWS = ["--only", "residual.values/V2*"]  # one case, of whoever has the operation
DRAWS = ["--only", "format.draw/V[23]-*"]  # four cases, which `hostile` and the plugins claim


def plugins():
    def plugin(name, code, says, states, only=None):
        path = os.path.join(PLUGINS, f"plugin_{name}.so")
        run(f"plugin {name}", ["--iut", f"plugin:{path}"] + (only or DRAWS), code, says, states)

    unusable = [
        ("no_symbol", "exports no symbol iut_entry; define it with IUT_EXPORT"),
        ("other_abi", "rebuild it against this iut.h"),
        ("no_table", "iut_entry returned NULL"),
        ("no_create", "every implementation needs these four"),
        ("tiny", "set `size` to sizeof(iut_api)"),
        ("create_fails", "no card"),
        ("create_silent", "gave no reason"),
    ]
    for name, text in unusable:
        plugin(name, NOT_CONFORMANT, [text], {"FAIL": 1})
    plugin("constructor_crashes", NOT_CONFORMANT, ["signal 6"], {"CRASH": 1})
    plugin("overruns", NOT_CONFORMANT, ["beyond the end of the output array token"],
           {"FAIL": 4})
    plugin("writes_input", NOT_CONFORMANT, ["input array was written to (INV-02)"], {"FAIL": 4})
    plugin("skips", NOT_CONFORMANT, ["-1"], {"FAIL": 4})
    # What one operation does wrong does not touch what is not claimed.
    plugin("overruns", NOT_CONFORMANT, ["residual is not claimed"],
           {"FAIL": 4, "NOT_CLAIMED": 1}, ROWS + DRAWS)

    text = os.path.join(folder, "text.so")
    with open(text, "w", encoding="utf-8") as f:
        f.write("no shared object\n")
    for path in [text, folder]:
        run(f"plugin {path}", ["--iut", f"plugin:{path}"] + DRAWS, USAGE,
            ["cannot load the plugin", path], {"ERROR": 1})
    missing = os.path.join(folder, "missing.so")
    run("no plugin", ["--iut", f"plugin:{missing}"] + DRAWS, USAGE,
        ["cannot load the plugin", missing], {"ERROR": 1})


def programs():
    def program(command, code, says, state, more=(), count=1):
        run(f"exec:{command}", ["--iut", f"exec:{command}"] + DRAWS + list(more), code, says,
            {state: count})

    program("true", NOT_CONFORMANT, ["exit code 0"], "CRASH")
    program("sh -c 'kill -ABRT $$'", NOT_CONFORMANT, ["signal 6"], "CRASH")
    program("sh -c 'echo licence expired >&2; exit 5'", NOT_CONFORMANT,
            ["exit code 5", "licence expired"], "CRASH")
    # Whether their first bytes come before the request or after it is chance.
    program("echo hello world, loading", NOT_CONFORMANT, ["garbage"], "FAIL")
    program("yes", NOT_CONFORMANT, ["garbage"], "FAIL")
    program("cat /dev/zero", NOT_CONFORMANT, ["garbage"], "FAIL")
    program("cat", NOT_CONFORMANT, ["it is a request"], "FAIL")
    program("sleep 60", NOT_CONFORMANT, ["within 3 s"], "TIMEOUT", ["--timeout", "0.5"])
    program("/no/such/program", USAGE, ["not found"], "ERROR")
    program(f"'{HOSTILE}' claims_field", NOT_CONFORMANT, ["no field colour"], "FAIL")
    for mode, says, state in [
            ("crash", "signal 11", "CRASH"), ("exit_0", "exit code 0", "CRASH"),
            ("half", "before its answer was whole", "CRASH"),
            ("too_much", "bytes after the reply", "FAIL"),
            ("json", "no JSON", "FAIL"), ("huge", "beyond the limit", "FAIL"),
            ("type", "is due", "FAIL"),
            ("hang", "no whole answer within", "TIMEOUT")]:
        program(f"'{HOSTILE}' {mode}", NOT_CONFORMANT, [says], state, ["--timeout", "2"], 4)
    # It crashes once, on whatever comes first; a fresh process serves the rest.
    mark = os.path.join(folder, "mark")
    dense = ["--only", "format.draw/V?-dense", "--jobs", "1"]
    run("crash once", ["--iut", f"exec:'{HOSTILE}' crash '{mark}'"] + dense, NOT_CONFORMANT,
        ["signal 11"], {"CRASH": 1, "PASS": 1})


def broken_vectors():
    def variant(name, change, says):
        copy = os.path.join(folder, "vectors")
        shutil.rmtree(copy, ignore_errors=True)
        os.mkdir(copy)
        for file in os.listdir(VECTORS):
            if file.endswith(".json"):
                shutil.copy(os.path.join(VECTORS, file), copy)
        change(copy)
        # The cases that need no vector are judged as ever.
        run(f"vectors: {name}", ["--vectors", copy] + vectors_and_rows, ERROR, says,
            {"ERROR": draws, "PASS": 1})

    def write(folder_, name, text):
        with open(os.path.join(folder_, name), "w", encoding="utf-8") as f:
            f.write(text)

    def edit(change):
        def apply(folder_):
            with open(os.path.join(folder_, "draw.json"), encoding="utf-8") as f:
                data = json.load(f)
            change(data)
            write(folder_, "draw.json", json.dumps(data))
        return apply

    def with_key(key, value):
        return edit(lambda data: data.update({key: value}))

    def with_first(key, value):
        return edit(lambda data: data["groups"][0].update({key: value}))

    def with_text(text):
        return lambda folder_: write(folder_, "draw.json", text)

    def with_folder(folder_):
        os.remove(os.path.join(folder_, "draw.json"))
        os.mkdir(os.path.join(folder_, "draw.json"))

    vectors_and_rows = ["--only", "replay.vectors/draw.*"] + ROWS
    with open(os.path.join(VECTORS, "draw.json"), encoding="utf-8") as file:
        draws = len(json.load(file)["groups"])
    run("vectors: intact", ["--vectors", VECTORS] + vectors_and_rows, OK, [])
    variant("no file", lambda v: [os.remove(os.path.join(v, f)) for f in os.listdir(v)],
            ["No such file", "assay vectors generate"])
    variant("one file less", lambda v: os.remove(os.path.join(v, "exp.json")), ["exp.json"])
    variant("empty file", with_text(""), ["draw.json:1"])
    variant("half a file", with_text('{"schema": "assay-'), ["draw.json:1"])
    variant("binary file", with_text("\0\1\2"), ["draw.json:1"])
    variant("a folder for a file", with_folder, ["draw.json"])
    variant("other arithmetic", with_key("arithmetic", 9), ["arithmetic"])
    variant("other schema", with_key("schema", "x"), ["draw.json", "schema"])
    variant("other kind", with_key("kind", "exp"), ["draw.json"])
    variant("unknown key", with_key("colour", 1), ["draw.json", "colour"])
    variant("no groups", with_key("groups", []), ["draw.json", "groups"])
    variant("a group less", edit(lambda data: data["groups"].pop()), ["draw."])
    variant("a group twice", edit(lambda d: d["groups"].append(d["groups"][0])), ["draw."])
    variant("a vocabulary of -1", with_first("V", -1), ["V"])
    variant("text for tests", with_first("tests", "x"), ["tests"])


def broken_traces():
    """A file of traces that is wrong in one way is the implementation's fault, in every case."""
    head = b'{"schema": "assay-traces-1", "name": "x", "traces": ['
    only = ["--only", "trace.methods/trace.lookup.*"]

    def traces(name, text, says):
        path = os.path.join(folder, "traces.json")
        with open(path, "wb") as f:
            f.write(text)
        run(f"traces: {name}", ["--iut", f"traces:{path}"] + only, NOT_CONFORMANT, [says],
            {"FAIL": 4})

    traces("empty file", b"", "traces.json:1")
    traces("no JSON", head, "traces.json:1")
    traces("no UTF-8", head.replace(b'"x"', b'"\xff"') + b"]}", "traces.json:1")
    traces("a key twice", head + b'{"id": "a", "id": "b"}]}', "traces.json:1")
    traces("deep", b"[" * 100000, "traces.json:1")
    traces("too large", b" " * (1 << 24), "16 MiB")
    traces("no vector", head + b'{"id": "x", "observed": {"error": "x"}}]}', "no trace vector")
    run("traces: a folder", ["--iut", f"traces:{folder}"] + only, NOT_CONFORMANT, [], {"FAIL": 4})
    missing = os.path.join(folder, "nowhere", "traces.json")
    run("traces: no file", ["--traces", missing] + only, USAGE, [missing])
    run("traces: no vectors", ["--vectors", folder] + only, ERROR, ["No such file"], {"ERROR": 4})


def broken_waivers():
    def waiver(name, text, says, code=USAGE):
        path = os.path.join(folder, "waivers.json")
        with open(path, "wb") as f:
            f.write(text)
        run(f"waivers: {name}", ["--waivers", path] + ROWS, code, [says])

    whole = b'[{"case": "x", "issue": "#1", "reason": "r", "expires": "2999-01-01"}]'
    waiver("empty file", b"", "waivers.json:1")
    waiver("no JSON", whole[:-9], "waivers.json:1")
    waiver("an object", b"{}", "must be a list")
    waiver("no UTF-8", whole.replace(b"r\"", b"\xff\""), "waivers.json:1")
    waiver("a key twice", whole.replace(b"issue", b"case"), "waivers.json:1")
    waiver("no date", whole.replace(b"2999-01-01", b"soon"), "YYYY-MM-DD")
    waiver("deep", b"[" * 100000, "waivers.json:1")
    waiver("too large", b" " * (1 << 24), "16 MiB")
    run("waivers: a folder", ["--waivers", folder] + ROWS, USAGE, [folder])


def models():
    """`assay decode` with a model folder that is wrong in one way: USAGE, and what is wrong."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 8,
        "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2,
        "num_key_value_heads": 1, "intermediate_size": 4, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": True,
        "bos_token_id": 0, "eos_token_id": 1}
    shapes = {"embed_tokens.weight": [8, 8], "norm.weight": [8]}
    layer = {"input_layernorm": [8], "post_attention_layernorm": [8], "self_attn.q_proj": [8, 8],
             "self_attn.k_proj": [4, 8], "self_attn.v_proj": [4, 8], "self_attn.o_proj": [8, 8],
             "mlp.gate_proj": [4, 8], "mlp.up_proj": [4, 8], "mlp.down_proj": [8, 4]}
    shapes.update({f"layers.0.{name}.weight": shape for name, shape in layer.items()})
    header, data = {}, b""
    for i, (name, shape) in enumerate(shapes.items()):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        place = [len(data), len(data) + 4 * n]
        header["model." + name] = {"dtype": "F32", "shape": shape, "data_offsets": place}
        data += struct.pack(f"<{n}f", *[((7 * j + i) % 11 - 5) / 8 for j in range(n)])

    def weights(header_, data_):
        text = json.dumps(header_).encode()
        return struct.pack("<Q", len(text)) + text + data_

    whole = weights(header, data)
    index = json.dumps({"weight_map": {name: "a.safetensors" for name in header}}).encode()

    def model(name, files, code, says):
        path = os.path.join(folder, "model")
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        for file, content in dict({"config.json": json.dumps(config).encode()}, **files).items():
            if callable(content):
                content(os.path.join(path, file))
            else:
                with open(os.path.join(path, file), "wb") as f:
                    f.write(content)
        got, text = call([ASSAY, "decode", "--model", path, "--tokens", "2", "--max-new", "2"])
        detail = f"  exit code {got}, due {code}; due text: {says}\n{text}"
        expect(f"model: {name}", got == code and says in text and "Sanitizer" not in text, detail)

    def with_config(**fields):
        return {"config.json": json.dumps(dict(config, **fields)).encode(),
                "model.safetensors": whole}

    def with_first(**fields):
        name = "model.embed_tokens.weight"
        return {"model.safetensors": weights(dict(header, **{name: dict(header[name], **fields)}), data)}

    nan = data[:36] + struct.pack("<I", 0x7FC00000) + data[40:]
    model("intact", {"model.safetensors": whole}, OK, "")
    model("sharded", {"a.safetensors": whole, "model.safetensors.index.json": index}, OK, "")
    for name, files, says in [
            ("no weights", {}, "has neither model.safetensors nor"),
            ("no JSON", {"config.json": b"{", "model.safetensors": whole}, "config.json:1"),
            ("a folder for a file", {"config.json": os.mkdir}, "is a folder"),
            ("a pipe for a file", {"config.json": os.mkfifo}, "is a pipe"),
            ("a link to nothing", {"model.safetensors": lambda p: os.symlink("x", p)}, "No such file"),
            ("a link to itself", {"model.safetensors": lambda p: os.symlink(p, p)}, "symbolic links"),
            ("another architecture", with_config(architectures=["X"]), "architectures: X is not"),
            ("a sliding window", with_config(sliding_window=4), "sliding_window: is not supported"),
            ("a huge model", with_config(num_hidden_layers=1 << 40), "num_hidden_layers: must be"),
            ("more layers", with_config(num_hidden_layers=2), "layers.1.input_layernorm.weight is mis"),
            ("empty weights", {"model.safetensors": b""}, "is empty"),
            ("half a length", {"model.safetensors": whole[:5]}, "are no safetensors file"),
            ("half a header", {"model.safetensors": whole[:99]}, "cut off"),
            ("half the data", {"model.safetensors": whole[:-9]}, "bytes of data"),
            ("a header of 4 GB", {"model.safetensors": struct.pack("<Q", 1 << 32) + whole[8:]},
             "a header of 4294967296 bytes"),
            ("a header of 2^64", {"model.safetensors": b"\xff" * 8 + whole[8:]}, "at most 100000000"),
            ("a shape that overflows", with_first(shape=[1 << 40, 1 << 40]), "too many elements"),
            ("a place below 0", with_first(data_offsets=[-256, 0]), "data_offsets[0]: must be an integer from 0"),
            ("overlap", with_first(shape=[9, 8], data_offsets=[0, 288]), "overlap"),
            ("another dtype", with_first(dtype="F64", shape=[4, 8]), "has dtype F64"),
            ("another shape", with_first(shape=[4, 16]), "has shape [4, 16]; by config.json"),
            ("a NaN", {"model.safetensors": weights(header, nan)}, "embedding: weight at row 1, column 1"),
            ("no shard", {"model.safetensors.index.json": index}, "a.safetensors: No such file"),
            ("a shard elsewhere", {"model.safetensors.index.json": index.replace(b"a.s", b"../a.s")},
             "must be plain, without a path")]:
        model(name, files, USAGE, says)


def outputs():
    missing = os.path.join(folder, "missing", "file")
    for option in ["--json", "--junit", "--html"]:
        run(f"{option} in no folder", [option, missing] + ROWS, USAGE, [f"cannot write {missing}"])
        run(f"{option} on a full disk", [option, "/dev/full"] + ROWS, ERROR, ["cannot write /dev/full"])
    run("--log in no folder", ["--log", missing] + ROWS, USAGE, [f"cannot write {missing}"])
    run("--log on a full disk", ["--log", "/dev/full"] + ROWS, ERROR, ["/dev/full"])
    run("--iut-log in no folder", ["--iut-log", missing] + ROWS, USAGE, [f"cannot write {missing}"])


def commands():
    """The other subcommands: a message that names the file, and no verdict."""
    cut = os.path.join(folder, "cut")
    shutil.copytree(VECTORS, cut, ignore=lambda _, names: [n for n in names if "." not in n])
    with open(os.path.join(cut, "draw.json"), "w", encoding="utf-8") as f:
        f.write("[")
    missing = os.path.join(folder, "missing", "folder")
    for argv, says in [
            (["vectors", "check", "--vectors", cut], "draw.json:1"),
            (["vectors", "list", "--vectors", missing], missing),
            (["vectors", "generate", "--out", missing], missing),
            (["vectors", "flip", "--out", missing], missing),
            (["traces", "write", missing], missing),
            (["traces", "write", "x", "--vectors", missing], missing),
            (["coverage", "--write", missing], missing)]:
        code, text = call([ASSAY] + argv)
        expect(" ".join(argv), code == ERROR and says in text, f"  exit code {code}\n{text}")


def raw_input():
    """What serves frames, fed with what is none: an exit code that is not 0, and a word."""
    header = b'{"id":1,"op":"claims","args":{},"tensors":[]}'

    def frame_of(head, payload):
        return struct.pack("<QI", 4 + len(head) + payload, len(head)) + head + bytes(payload)

    frame = frame_of(header, 0)
    inputs = {"garbage": b"hello, world, are you there", "half a prefix": frame[:7],
              "half a header": frame[:-5], "no JSON": frame[:-1] + b"]", "huge": b"\xff" * 64,
              "no object": frame_of(b"[]", 0),
              "half a tensor": frame_of(header.replace(b"[]", b'[["x","i32",[4]]]'), 16)[:-3]}
    python = sys.executable
    servers = {"worker": [ASSAY, "worker", "ref"],
               "python": [python, os.path.join(EXAMPLES, "example_verify.py")]}
    if call([python, "-c", "import numpy"])[0] != 0:
        del servers["python"]
    for server, argv in servers.items():
        code, text = call(argv, frame)
        expect(f"{server}: a whole frame", code == 0, f"  exit code {code}\n{text}")
        for name, data in inputs.items():
            code, text = call(argv, data)
            wrong = code is None or code <= 0 or "Sanitizer" in text or "Traceback" in text
            expect(f"{server}: {name}", not wrong and text.strip(),
                   f"  exit code {code}\n{text}")


with tempfile.TemporaryDirectory() as folder:
    for part in [plugins, programs, broken_vectors, broken_traces, broken_waivers, models, outputs,
                 commands, raw_input]:
        part()
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
