#!/usr/bin/env python3
"""What runs before main in a program with kernels: `constructors.py PROGRAM...`.

A constructor of nvcc's registers the kernels of each file; a kernel launched before is not found. Which
constructor is first depends on the order in which the linker meets the files, so none of ours may stand
in front of them."""
import re
import struct
import subprocess
import sys

REGISTERS = "__sti____cudaRegisterAll"
# The C runtime's, libcudart's, and the dynamic initialisers of libstdc++.
KNOWN = re.compile(REGISTERS + r"|^(__cpu_indicator_init|frame_dummy|libcudart_static_\w+|_GLOBAL__sub_I_\w+\.cc)$")


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def constructors(program):
    """Their names, in the order in which they are called."""
    head = re.search(r"\.init_array\s+INIT_ARRAY\s+(\w+)\s+(\w+)\s+(\w+)", said("readelf", "-SW", program))
    at, offset, size = (int(word, 16) for word in head.groups())
    with open(program, "rb") as file:
        file.seek(offset)
        address = list(struct.unpack(f"<{size // 8}Q", file.read(size)))
    for place, value in re.findall(r"^(\w+)\s+\w+\s+R_X86_64_RELATIVE\s+(\w+)", said("readelf", "-rW", program), re.M):
        if at <= int(place, 16) < at + size:
            address[(int(place, 16) - at) // 8] = int(value, 16)
    names = {int(line.split()[0], 16): line.split()[2] for line in said("nm", program).splitlines()
             if len(line.split()) == 3 and line.split()[1] in "tTwW"}
    return [names.get(a, hex(a)) for a in address]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for program in sys.argv[1:]:
        names = constructors(program)
        last = max((i for i, name in enumerate(names) if REGISTERS in name), default=-1)
        if last < 0:
            sys.exit(f"{program}: no constructor registers kernels: {', '.join(names)}")
        foreign = [name for name in names[:last] if not KNOWN.search(name)]
        if foreign:
            sys.exit(f"{program}: before its kernels are registered runs {', '.join(foreign)}")
        print(f"{program}: {sum(REGISTERS in name for name in names)} files of kernels, registered first")


main()
