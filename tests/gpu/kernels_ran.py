#!/usr/bin/env python3
"""Every kernel ran on the grid emulator: `kernels_ran.py ROOT LOG` compares the kernels that the
sources under ROOT/gpu define, and the launches that they contain, with LOG, to which the emulator
wrote the name of each that it ran (ASSAY_EMU_KERNELS). A kernel that nobody launches has not run;
one of a template runs in every form that is launched. The kernels of gpu/bench are left to its dry runs."""
import re
import sys
from pathlib import Path

DEFINED = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^()]*\)\s*)?(\w+)\s*\(")
LAUNCHED = re.compile(r"\bLAUNCH(?:_CLUSTERS\([^,]*,|\()\s*(\w+(?:<[^<>()]*>)?)\s*,")


def plain(text):
    return "".join(text.split())


def main():
    root, log = Path(sys.argv[1]), Path(sys.argv[2])
    ran = {plain(line) for line in log.read_text().splitlines()} if log.exists() else set()
    names = {name.split("<")[0] for name in ran}
    defined, missing = 0, []
    for source in sorted([*root.glob("gpu/**/*.cu"), *root.glob("gpu/**/*.cuh")]):
        text, where = source.read_text(), source.relative_to(root)
        if where.parts[:2] == ("gpu", "bench"):
            continue
        kernels = DEFINED.findall(text)
        if len(kernels) != text.count("__global__"):
            missing.append(f"{where}: {text.count('__global__')} kernels, of which {len(kernels)} are understood")
        defined += len(kernels)
        missing += [f"{where}: the kernel {k} never ran" for k in kernels if k not in names]
        missing += [f"{where}: the launch of {k} never ran"
                    for k in sorted({plain(k) for k in LAUNCHED.findall(text)} - ran)]
    print(*missing, sep="\n")
    print(f"{defined} kernels, {len(ran)} forms of them ran, {len(missing)} did not")
    return 1 if missing or not defined else 0


if __name__ == "__main__":
    sys.exit(main())
