#!/usr/bin/env python3
"""What `cmake --install` puts into a folder works from there alone: the program finds its plugins, vectors and models,
a verifier is built against the header, an adapter runs. usage: install.py CMAKE BUILD CC PYTHON"""
import os
import subprocess
import sys
import tempfile

CMAKE, BUILD, CC, PYTHON = sys.argv[1:]
RUN = ["run", "--level", "smoke", "--quiet"]
CASE = ["--only", "replay.random/V8-dense"]
KILLED = "ACCEPT_LE"  # by that case of replay.edges


def say(*command, code, says=""):
    """Runs the command outside of the tree, with nothing of it in the environment."""
    done = subprocess.run(command, cwd="/", env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=300)
    text = done.stdout + done.stderr
    if done.returncode != code or says not in text or BUILD in text:
        sys.exit(f"{' '.join(command)}\nexit code {done.returncode}, where {code} is due, with \"{says}\":\n{text}")


with tempfile.TemporaryDirectory() as place:
    subprocess.run([CMAKE, "--install", BUILD, "--prefix", place, "--strip"], check=True, stdout=subprocess.DEVNULL)
    assay, share = f"{place}/bin/assay", f"{place}/share/assay"
    traces, plugin = f"{place}/traces.json", f"{place}/verifier.so"
    say(assay, *RUN, *CASE, "--only", "lm.canonical/long-0", code=0, says="CONFORMANT")
    say(assay, *RUN, "--only", "replay.edges/dyadic-V3", "--iut", f"mutant:{KILLED}", code=1, says="NOT CONFORMANT")
    say(assay, "traces", "write", traces, code=0)
    say(assay, *RUN, "--iut", f"traces:{traces}", code=0, says="CONFORMANT")
    say(assay, "decode", "--prompt", "The ", "--max-new", "2", code=0)
    say(assay, "explain", "TRC-01", code=0)
    say(CC, "-std=c11", "-O2", "-fPIC", "-shared", "-I", f"{place}/include/assay/conformance", "-o", plugin,
        f"{share}/adapters/c/example_plugin.c", code=0)
    say(assay, *RUN, *CASE, "--iut", f"plugin:{plugin}", code=0, says="CONFORMANT")
    say(assay, *RUN, *CASE, "--iut", f"exec:{PYTHON} {share}/adapters/python/example_batch.py", code=0,
        says="CONFORMANT")
    spec = os.listdir(f"{share}/spec")
    if "06-conformance.md" not in spec:
        sys.exit(f"{share}/spec has no chapter 6: {spec}")
