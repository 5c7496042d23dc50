#!/usr/bin/env python3
"""Reads the machine code and the PTX in compiled kernels, prints what they use, and fails where a
kernel breaks a rule that its bits or its speed rest on.

    check_code.py FILE...           a library, object or cubin; device code uncompressed (-no-compress)
      --architectures 80,90         every kernel is compiled for these
      --compact                     a line for each product and attention, one for all others
      --expect RULE,...             succeeds if exactly these rules are broken: tests the rules

The rules, by name:
    missing     each kernel is there for each architecture that is asked for
    local       a product or attention kernel has no stack frame and touches no local memory
    narrow      what a product loads past the caches (its weights) it loads 16 bytes at a time
    wide        a product has such loads at all
    large       a product's or an attention's code fits the instruction cache, so no loop was unrolled
                that should not be
    flush       no binary32 operation flushes subnormals, but for those few of the compiler's own routines
                for correctly rounded quotients and roots, where none can stand
    fast        no approximate function: sine, logarithm and the like, or a reciprocal or root that is
                not part of a correctly rounded division or root
    loose       PTX leaves no sum or product to be contracted: each names its rounding
    contracted  the probe, whose source adds to a product, has no fused multiply-add: the compiler was
                told not to make them
    tensor      no tensor core: their sums have another order
    turn        from sm_90 on, a kernel has a wait for its turn (cuda.h)
    early       no access to device memory stands before the first of those
    constant    no load asks that its memory be constant while the kernel runs
    fence       no fence for the device is sequentially consistent: where blocks meet, to acquire and to
                release is enough
    leave       the last barrier of a cluster orders no memory, and behind it stands no load that may be
                of another block's (an LD)

An instruction has 16 bytes on these architectures. Its operation is the low 9 bits; the width of a
memory access is bits 73 to 75 (from sm_100 on, 74 and 75 of an asynchronous copy), a load's eviction
priority 84 to 86 and kind 77 to 79, a special function 74 to 77, and bit 80 of a binary32 sum, product or fused
multiply-add flushes subnormals. A fence's scope is bits 76 to 78 (0: the block), and bit 79 is 0 where it is
sequentially consistent; of a cluster's barriers those that arrive have 4 in bits 9 to 11, those that wait 6.
Registers and stack frames stand in the sections .nv.info. The disassembler of CUDA agrees on the operations,
widths and flags of all our kernels, but was not asked for fences and clusters' barriers.
"""
import argparse
import collections
import re
import shutil
import struct
import subprocess
import sys

OPERATIONS = {
    0x020: "FMUL", 0x021: "FADD", 0x023: "FFMA", 0x028: "DMUL", 0x029: "DADD", 0x02B: "DFMA",
    0x037: "MMA", 0x03C: "MMA", 0x03F: "MMA", 0x102: "FCHK", 0x106: "I2F", 0x112: "I2F",
    0x108: "MUFU", 0x11D: "BAR", 0x181: "LDG", 0x183: "LDL", 0x184: "LDS", 0x186: "STG",
    0x187: "STL", 0x188: "STS", 0x189: "SHFL", 0x1A8: "ATOM", 0x18E: "ATOM", 0x1AE: "LDGSTS",
    0x02E: "ACQBULK", 0x192: "MEMBAR", 0x1C7: "UCGABAR",
    0x180: "LD", 0x185: "ST", 0x18A: "ATOM", 0x18B: "ATOM", 0x1A9: "ATOM",
}
MEMORY = ("LDG", "LDS", "LDL", "STG", "STS", "STL", "LDGSTS")
BITS = (8, 8, 16, 16, 32, 64, 128, 256)
SPECIAL = {0: "COS", 1: "SIN", 2: "EX2", 3: "LG2", 4: "RCP", 5: "RSQ", 6: "RCP64H", 7: "RSQ64H",
           8: "SQRT", 9: "TANH"}
FAST = ("COS", "SIN", "EX2", "LG2", "TANH")
QUOTIENT, ROOT = 2, 7  # flushing operations in the compiler's routine for all quotients; in each root
EVICT_FIRST = 0  # what __ldcs asks for
CONSTANT = 4  # the kind of load that __ldg is
DEVICE_MEMORY = ("LDG", "STG", "ATOM", "LDGSTS", "LD", "ST")  # LD and ST: of whatever memory
ARRIVES, NEAR = 4, 64  # a cluster's barrier; its own fence is as near, in bytes
LARGEST = 64 << 10
REGISTERS, FRAME = 0x2F, 0x11  # attributes in .nv.info

PRODUCT = re.compile(r"product|gemv|gemm")
PROBE = re.compile(r"probe")
HOT = re.compile(r"product|gemv|gemm|attend|attention")

Section = collections.namedtuple("Section", "name kind flags address offset size link info")


class Kernel:
    """What one kernel of one architecture uses: count of each operation, (operation, bits) of
    each width, ("stream", bits) of loads past the caches."""

    def __init__(self, name, arch):
        self.name, self.arch = name, arch
        self.registers = self.stack = self.bytes = 0
        self.early = 0  # accesses to device memory before the wait for its turn
        self.leave = ""  # what is wrong with the last barrier of its cluster
        self.count = collections.Counter()
        self.special = collections.Counter()
        self.ptx = None  # its PtxKernel

    def read(self, code):
        self.bytes = len(code)
        fence = -NEAR
        for at in range(0, len(code), 16):
            low, high = struct.unpack_from("<QQ", code, at)
            name = OPERATIONS.get(low & 0x1FF)
            if name is None:
                continue
            self.count[name] += 1
            if name in DEVICE_MEMORY and not self.count["ACQBULK"]:
                self.early += 1
            if name in MEMORY:
                bits = BITS[high >> 9 & 7]
                if name == "LDGSTS" and self.arch >= 100:
                    bits = 32 << (high >> 10 & 3)
                self.count[name, bits] += 1
                if name == "LDG" and high >> 20 & 7 == EVICT_FIRST:
                    self.count["stream", bits] += 1
                if name == "LDG" and high >> 13 & 7 == CONSTANT:
                    self.count["constant"] += 1
            elif name == "MEMBAR":
                fence = at
                self.count["sequential"] += bool(high >> 12 & 7) and not high >> 15 & 1
            elif name == "UCGABAR" and low >> 9 & 7 == ARRIVES:
                self.leave = "it orders memory" if at - fence < NEAR else ""
            elif name == "LD" and self.count["UCGABAR"]:
                self.leave = self.leave or "a load stands behind it"
            elif name == "MUFU":
                self.special[SPECIAL.get(high >> 10 & 15, "?")] += 1
            elif name in ("FMUL", "FADD", "FFMA") and high >> 16 & 1:
                self.count["flush"] += 1


class PtxKernel:
    """What one kernel's PTX says: how many fused multiply-adds, and operations that leave their
    rounding open or are approximate."""

    LOOSE = re.compile(r"\b(?:add|sub|mul|mad|fma)\.(?!rn\.f|rz\.f|rm\.f|rp\.f)(?:[a-z]+\.)*f(?:32|64)\b")
    APPROXIMATE = re.compile(r"\b[a-z0-9]+\.(?:approx|full)[.a-z0-9]*\b|\b\w+(?:\.\w+)*\.ftz\.\w+")
    FUSED = re.compile(r"\b(?:fma|mad)\.\w+\.f32\b")

    def __init__(self, text):
        self.loose = len(self.LOOSE.findall(text))
        self.approximate = len(self.APPROXIMATE.findall(text))
        self.fused = len(self.FUSED.findall(text))
        quotients, roots = (len(re.findall(name + r"\.rn\.f32", text)) for name in ("(?:div|rcp)", "sqrt"))
        self.flushes = (QUOTIENT if quotients else 0) + ROOT * roots


def sections_of(elf):
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    raw = [struct.unpack_from("<IIQQQQII", elf, offset + i * size) for i in range(count)]
    text = raw[names][4]
    return [Section(elf[text + r[0]:elf.index(b"\0", text + r[0])].decode(), *r[1:]) for r in raw]


def symbol_names(elf, sections):
    """Symbol number -> name."""
    table = next(s for s in sections if s.kind == 2)
    text = sections[table.link].offset
    names = {}
    for i in range(table.size // 24):
        at = text + struct.unpack_from("<I", elf, table.offset + 24 * i)[0]
        names[i] = elf[at:elf.index(b"\0", at)].decode()
    return names


def attributes(elf, section):
    """The (attribute, symbol, value) of .nv.info that name a symbol."""
    at, end = section.offset, section.offset + section.size
    while at < end:
        form, attribute, size = struct.unpack_from("<BBH", elf, at)
        at += 4
        if form != 4:  # the value stands in the place of the size
            continue
        if size == 8:
            yield (attribute, *struct.unpack_from("<II", elf, at))
        at += size


def read_cubin(elf):
    flags, = struct.unpack_from("<I", elf, 48)
    arch = flags >> 8 & 0xFF if elf[8] >= 8 else flags & 0xFF
    sections = sections_of(elf)
    names = symbol_names(elf, sections)
    kernels = {}
    for s in sections:
        if s.name.startswith(".text.") and s.size:
            name = s.name[len(".text."):]
            kernels[name] = Kernel(name, arch)
            kernels[name].read(elf[s.offset:s.offset + s.size // 16 * 16])
    for s in sections:
        if s.name != ".nv.info":
            continue
        for attribute, symbol, value in attributes(elf, s):
            kernel = kernels.get(names.get(symbol))
            if kernel and attribute == REGISTERS:
                kernel.registers = value
            elif kernel and attribute == FRAME:
                kernel.stack = value
    return list(kernels.values())


def read_ptx(text):
    """(name, architecture) -> PtxKernel. A kernel that calls functions answers for all of them."""
    arch = int(re.search(r"\.target sm_(\d+)", text).group(1))
    parts = re.split(r"(?m)^(?=(?:\.visible |\.weak |\.extern )*\.(?:entry|func)\b)", text)
    functions = "".join(p for p in parts if re.match(r"(?:\.\w+ )*\.func", p))
    found = {}
    for part in parts:
        entry = re.match(r"(?:\.\w+ )*\.entry ([\w$]+)", part)
        if entry:
            calls = re.search(r"\bcall\b", part) is not None
            found[entry.group(1), arch] = PtxKernel(part + (functions if calls else ""))
    return found


def end_of_elf(data, at):
    table, = struct.unpack_from("<Q", data, at + 40)
    size, count = struct.unpack_from("<HH", data, at + 58)
    return at + table + size * count


def read_file(path):
    """The kernels of every cubin inside the file, each with its PTX where that is there, too."""
    with open(path, "rb") as file:
        data = file.read()
    kernels, ptx = [], {}
    for match in re.finditer(rb"\x7fELF\x02\x01", data):
        at = match.start()
        if struct.unpack_from("<H", data, at + 18)[0] == 190:  # the machine is CUDA
            kernels += read_cubin(data[at:end_of_elf(data, at)])
    for match in re.finditer(rb"\.version \d[^\0]*", data):
        ptx.update(read_ptx(match.group().decode()))
    for k in kernels:
        k.ptx = ptx.get((k.name, k.arch))
    return kernels


def broken(k):
    """The rules that a kernel breaks: (rule, what is seen)."""
    if HOT.search(k.name):
        if k.stack or k.count["LDL"] or k.count["STL"]:
            yield "local", f"{k.stack} bytes of stack, {k.count['LDL']} LDL, {k.count['STL']} STL"
        if k.bytes > LARGEST:
            yield "large", f"{k.bytes} bytes of code, more than {LARGEST}"
    if PRODUCT.search(k.name):
        narrow = sum(n for key, n in k.count.items() if key[0] == "stream" and key[1] < 128)
        if narrow:
            yield "narrow", f"{narrow} loads of weights below 16 bytes"
        elif not k.count["stream", 128] and not k.count["LDGSTS", 128]:
            yield "wide", "no load of weights of 16 bytes"
    if k.count["flush"] > (k.ptx.flushes if k.ptx else 0):
        yield "flush", f"{k.count['flush']} operations flush subnormals"
    approximate = [f for f in FAST if k.special[f]]
    if k.special["RCP"] and not k.count["FCHK"] + k.count["I2F"]:
        approximate.append("RCP")
    if k.ptx and k.ptx.approximate:
        approximate.append(f"{k.ptx.approximate} in the PTX")
    if approximate:
        yield "fast", ", ".join(approximate)
    if k.ptx is None:
        yield "loose", "no PTX stands beside the machine code"
    elif k.ptx.loose:
        yield "loose", f"{k.ptx.loose} sums or products without a rounding"
    if PROBE.search(k.name) and k.count["FFMA"]:
        yield "contracted", f"{k.count['FFMA']} FFMA, none written"
    if k.count["MMA"]:
        yield "tensor", f"{k.count['MMA']} tensor core operations"
    if k.arch >= 90 and not k.count["ACQBULK"]:
        yield "turn", "it never waits"
    elif k.arch >= 90 and k.early:
        yield "early", f"{k.early} accesses to device memory before its turn"
    if k.count["constant"]:
        yield "constant", f"{k.count['constant']} loads"
    if k.count["sequential"]:
        yield "fence", f"{k.count['sequential']} fences are sequentially consistent"
    if k.leave:
        yield "leave", f"the last barrier of its cluster: {k.leave}"


def readable(names):
    """Mangled name -> a short one for the table."""
    texts = list(names)
    if shutil.which("c++filt"):
        out = subprocess.run(["c++filt"], input="\n".join(texts), capture_output=True, text=True, check=True)
        texts = out.stdout.splitlines()
    short = {}
    for name, text in zip(names, texts):
        text = re.sub(r"\(anonymous namespace\)::|\((?:anonymous namespace::)?as_storage\)|^void ", "", text)
        text = re.sub(r"\([^()]*\)$", "", text)
        short[name] = re.sub(r"\((?:int|bool)\)", "", text)
    return short


def widths(k, name, of=(32, 64, 128)):
    small = sum(k.count[name, b] for b in (8, 16))
    return "/".join(str(n) for n in [small] + [k.count[name, b] for b in of])


def print_rows(rows):
    """Aligned to the right, the last column to the left."""
    size = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(t.ljust(w) if i == len(r) - 1 else t.rjust(w)
                        for i, (t, w) in enumerate(zip(r, size))).rstrip())


def print_table(kernels, short):
    head = ("sm", "regs", "stack", "LDG <32/32/64/128", "streamed", "LDS <32/32/64/128", "FFMA", "fma in PTX",
            "DFMA", "LDL+STL", "BAR", "KB", "kernel")
    rows = [(str(k.arch), str(k.registers), str(k.stack), widths(k, "LDG"), widths(k, "stream"),
             widths(k, "LDS"), str(k.count["FFMA"]), str(k.ptx.fused) if k.ptx else "?", str(k.count["DFMA"]),
             str(k.count["LDL"] + k.count["STL"]), str(k.count["BAR"]),
             f"{k.bytes / 1024:.1f}", short[k.name])
            for k in sorted(kernels, key=lambda k: (short[k.name], k.arch))]
    print_rows([head] + rows)


def print_compact(kernels, short):
    """Products and attention with their registers, spills and loads; three figures are of the
    architectures in their order, one is of all. The others in a line."""
    hot = [k for k in kernels if HOT.search(k.name)]
    others = [k for k in kernels if not HOT.search(k.name)]
    figures = (("regs", lambda k: str(k.registers)),
               ("spills", lambda k: str(k.stack + k.count["LDL"] + k.count["STL"])),
               ("streamed <32/32/64/128", lambda k: widths(k, "stream")),
               ("LDG <32/32/64/128", lambda k: widths(k, "LDG")),
               ("LDS <32/32/64/128", lambda k: widths(k, "LDS")))
    rows = [[name for name, _ in figures] + ["sm", "kernel"]]
    for name in sorted({short[k.name] for k in hot}):
        same = sorted((k for k in hot if short[k.name] == name), key=lambda k: k.arch)
        cells = [[figure(k) for k in same] for _, figure in figures]
        rows.append([" ".join(c) if len(set(c)) > 1 else c[0] for c in cells] +
                    [" ".join(str(k.arch) for k in same), name])
    print_rows(rows)
    spilt = sum(k.count["LDL"] + k.count["STL"] > 0 for k in others)
    print(f"{len({k.name for k in others})} other kernels, {len(others)} compiled: at most "
          f"{max((k.registers for k in others), default=0)} registers; {spilt} touch local memory")


def missing(kernels, architectures):
    """(rule, kernel, what) for those that lack an architecture."""
    for name in sorted({k.name for k in kernels}):
        same = [k for k in kernels if k.name == name]
        lacking = sorted(set(architectures) - {k.arch for k in same})
        if lacking:
            yield "missing", same[0], "not compiled for " + ", ".join(f"sm_{a}" for a in lacking)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--expect", help="rules that must be broken, by name, and no others")
    parser.add_argument("--architectures", default="", help="numbers, for which every kernel must be there")
    parser.add_argument("--compact", action="store_true", help="print less")
    parser.add_argument("file", nargs="+")
    ask = parser.parse_args()
    kernels = [k for path in ask.file for k in read_file(path)]
    if not kernels:
        sys.exit("check_code: no uncompressed machine code found in " + " ".join(ask.file))
    short = readable(sorted({k.name for k in kernels}))
    (print_compact if ask.compact else print_table)(kernels, short)
    faults = [(rule, k, what) for k in kernels for rule, what in broken(k)]
    faults += missing(kernels, [int(a) for a in ask.architectures.split(",") if a])
    for rule, k, what in faults:
        print(f"{rule}: {short[k.name]}, sm_{k.arch}: {what}")
    names = {short[k.name] for k in kernels}
    print(f"{len(names)} kernels, {len(kernels)} compiled, {len(faults)} faults")
    if ask.expect:
        wanted, seen = set(ask.expect.split(",")), {rule for rule, _, _ in faults}
        if wanted != seen:
            sys.exit(f"check_code: expected {sorted(wanted)}, found {sorted(seen)}")
    elif faults:
        sys.exit(1)


if __name__ == "__main__":
    main()
