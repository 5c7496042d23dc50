#!/usr/bin/env bash
# What `ci/gpu` makes of a folder, where the benches are those of the emulator, and the tests, the suite, the
# sanitizer, the driver's tools and the repository are stand-ins:
#   ci_gpu_test.sh CI_GPU DRY_BENCH_GPU
# shellcheck disable=SC2016 # the stand-ins expand what stands in quotes
set -euo pipefail
script=$1 bench_gpu=$2
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
export top folder=$top/run tools=$top/tools out=$top/out
mkdir -p "$folder/bin" "$folder/lib" "$tools"
cp "$script" "$folder/gpu"
echo abc >"$folder/commit"

# program PATH LINES: a stand-in.
program() {
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

fail() {
    echo "line ${BASH_LINENO[*]}: $*; it printed:"
    cat "$top/printed"
    exit 1
}

same() { [ "$1" = "$2" ] || fail "\"$1\", not \"$2\""; }
has() { grep -qE -- "$1" "$2" || fail "no line \"$1\" in $2"; }
lacks() { ! grep -qE -- "$1" "$2" || fail "a line \"$1\" in $2"; }

# expect CODE TEXT [RUN]: runs the folder; its exit code and a line of what it prints.
expect() {
    local code=0 wanted=$1 text=$2
    shift 2
    PATH="$tools:$PATH" "$folder/gpu" --run "$@" "$out" >"$top/printed" 2>&1 || code=$?
    same "$code" "$wanted"
    has "$text" "$top/printed"
}

# says PYTHON: of `report`, gpu.json; `parts` and `outcome` are of its parts.
says() {
    python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
parts = [p["part"] for p in report["parts"]]
outcome = {p["part"]: p["outcome"] for p in report["parts"]}
exec(sys.argv[2])' "$out/gpu.json" "$1" || fail "gpu.json is not as expected"
}

logged() { tar -xOzf "$out/logs.tar.gz" "work/$1"; }

# The worker of a suite that hangs has ended; nobody may have waited for it.
worker_ended() {
    local state
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$(cat "$top/worker.pid")/status" 2>/dev/null) || true
    [ "${state:-Z}" = Z ] || fail "the suite's worker lives on"
}

# ---- The stand-ins. ----------------------------------------------------------------------------------

# A test with two arguments or none; `--device` names the device.
device='[ "$1" != --device ] || { echo "device: Stand-in \"GPU\""; exit 0; }'$'\n'
program "$folder/bin/device_a_test" "$device"
program "$folder/bin/device_b_test" "$device"
program "$folder/bin/device_pair_test" "$device"' [ -d "$1/target" ]'
program "$folder/bin/device_draft_test" "$device"' echo "cases: $1"'
mkdir -p "$folder/share/assay/vectors/models/target"
cp -r "$(dirname "$script")/../vectors/models/draft" "$folder/share/assay/vectors/models/"
# The suite: against the fast path, and at the levels smoke, with traces, and full.
program "$folder/bin/traces_gpu" 'echo "{}" >"$1"'
program "$folder/bin/assay" '[ "$1 $2 $4 $5 $6" = "run --iut --jobs 1 --timeout" ] && [ -f "${3#plugin:}" ] || exit 2
    case $LD_LIBRARY_PATH in "$folder/lib/suite:$folder/lib:"*) ;; *) exit 2 ;; esac
    while [ $# -gt 0 ]; do
        case $1 in
        --json) json=$2 ;; --level) level=$2 ;; --iut-options) mode=$2 ;; --budget) budget=$2 ;; --traces) traces=$2 ;;
        esac
        shift
    done
    [ "$budget" -gt 0 ] || exit 2
    if [ -n "$mode" ]; then
        [ "$level" = smoke ] || exit 2
        echo "{\"cases\": []}" >"$json"
        case $mode in
        products=free,storage=f32,promise=identical) echo "$FREE"; [ "$FREE" = CONFORMANT ]; exit ;;
        products=fixed-shape,storage=bf16,*) echo CONFORMANT; exit "${FIXED:-0}" ;;
        esac
        echo CONFORMANT
        exit
    fi
    [ "$level" = full ] || [ -s "$traces" ] || exit 2
    printf "{\"verdict\": \"%s\",\n \"cases\": []\n}" "$VERDICT" >"$json"
    echo "$VERDICT: 1 case at level $level"
    [ "$level" != full ] || [ -z "${STOPPED:-}" ] || exit 4
    [ "$VERDICT" = CONFORMANT ]'
mkdir -p "$folder/lib/assay"
: >"$folder/lib/assay/libassay_gpu.so"
export VERDICT=CONFORMANT FREE=CONFORMANT
echo 'import sys; sys.exit(77)' >"$folder/bin/peers.py"
# In at-once: how many are at work, and what is. The first ones wait for three others.
program "$tools/compute-sanitizer" '[ "$2" != "${FAULT:-}" ] || { echo "========= alarm of $2"; exit 9; }
    case $LD_LIBRARY_PATH in "$folder/lib:"*/suite*) exit 9 ;; "$folder/lib:"*) ;; *) exit 9 ;; esac
    while [ "$1" != "--error-exitcode" ]; do options="$options $1"; shift; done
    shift 2
    mkdir -p "$top/at-work" && : >"$top/at-work/$$"
    i=0 n=$(ls "$top/at-work" | wc -l)
    while [ "$2${MODE:-}" = "" ] && [ ! -e "$top/met" ] && [ "$i" != 100 ]; do
        sleep 0.1; i=$((i + 1)) n=$(ls "$top/at-work" | wc -l)
        [ "$n" -le 3 ] || : >"$top/met"
    done
    echo "$n $(basename "$1")$options" >>"$top/at-once"
    rm "$top/at-work/$$"; exec "$@"'
program "$tools/nproc" 'echo 8'
program "$tools/nvidia-smi" 'case $1 in
    *driver*) echo 580.0 ;;
    *) echo "${MODE:-Default}" ;;
    esac'
program "$tools/find" 'case $1 in
    /dev) [ -z "${NODE:-}" ] || echo "$NODE" ;;
    *) exec '"$(command -v find)"' "$@" ;;
    esac'

# ---- A run of all, with the dry benches. -------------------------------------------------------------

cp "$bench_gpu" "$folder/bin/bench_gpu"
# Nsight Compute writes where it is told to, of a program that it runs as it is.
program "$tools/ncu" 'while [ "$1" != --log-file ]; do
        case $1 in --section) sections="$sections $2"; shift ;; esac; shift
    done
    [ -z "${NCU:-}" ] || { echo "$NCU" >"$2"; exit 1; }
    [ -n "${SILENT:-}" ] || printf "\"Kernel\",\"of %s\"\n" "$6" >"$2"
    echo "$sections" >"$top/sections"
    shift 2; exec "$@"'
# The device, 4 tests, traces, 6 suites, 5 benches, 3 profiles, the sanitizer, 12 under it.
expect 0 '^33 passed, 0 failed, 2 not run$'
says 'assert report["passed"] == 33 and report["commit"] == "abc" and report["device"] == "Stand-in GPU", report
assert report["driver"] == "580.0" and report["trouble"] == ""
assert report["suite"] == report["full"] == {"verdict": "CONFORMANT", "cases": []}
assert [(b["bench"], b["dry"]) for b in report["benches"]] == 5 * [("Kernels and steps", True)]
assert list(report["modes"]) == [f"suite, {m}, {s}" for m in ("free", "fixed-shape") for s in ("f32", "bf16")]
assert [{r["what"] for r in b["results"] if "unit" not in r} for b in report["benches"]] == [
    {"step"}, {"product"}, {"rule"}, {"decoding"}, {"shapes"}]
order = [parts.index(p) for p in ("device", "device_a_test", "suite", "compute-sanitizer", "device_a_test memcheck",
    "bench_gpu steps", "bench_gpu products", "bench_gpu rules", "peers steps", "profile products", "bench_gpu decode",
    "bench_gpu shapes", "suite, free, f32", "device_a_test racecheck", "suite, full")]
assert order == sorted(order), parts
assert not any(n.startswith("device_pair_test ") for n in parts), parts
assert [outcome[p] for p in parts if p.startswith("peers")] == 2 * ["not run"]'
same "$(cd "$out" && echo *)" "full.json gpu.json gpu.md logs.tar.gz profile.csv suite.json"
same "$(cat "$top/sections")" ' SpeedOfLight SchedulerStats WarpStateStats MemoryWorkloadAnalysis Occupancy'
same "$(cut -d, -f2 "$out/profile.csv" | tr '\n' ' ')" '"of products" "of steps" "of rules" '
has 'not run: peers products, not run: peers steps; of: tests suite memcheck steps' "$out/gpu.md"
has '^\| device_a_test racecheck \| ok \|' "$out/gpu.md"
has '^CONFORMANT: 1 case at level smoke$' "$out/gpu.md"
has '^### The suite on the device \(suite, full\)$' "$out/gpu.md"
has '^\| dry \| ours \| BF16 \| 64 \|' "$out/gpu.md"
has '^### Kernels and steps \(bench_gpu rules\)$' "$out/gpu.md"
same "$(grep '^#' "$out/gpu.md" | sort | uniq -d)" ''
same "$(logged device-draft-test.out)" 'cases: 40'
same "$(logged device-draft-test-memcheck.out)" 'cases: 10'
# The sanitizer's runs: several at once, at most three quarters of the processors.
at_once=$(cut -d' ' -f1 "$top/at-once" | sort -n | tail -n 1)
if [ "$at_once" -le 3 ] || [ "$at_once" -gt 6 ]; then fail "the sanitizer ran $at_once at once"; fi
rm "$top/at-once"
# One at a time: the longest first, after the look at the tool; and memcheck also looks for leaks.
MODE=Exclusive_Process expect 0 '^16 passed, 0 failed, 0 not run$' --only suite,memcheck,sanitizers
same "$(cut -d' ' -f1 "$top/at-once" | sort -u)" 1
same "$(sed -n '2s/^[0-9]* //p' "$top/at-once")" 'device_draft_test --tool memcheck --leak-check full --report-api-errors no'
# The slower tools begin with the shortest.
same "$(sed -n 's/^[0-9]* //p' "$top/at-once" | grep racecheck | cut -d' ' -f1 | tr '\n' ' ')" \
    'device_b_test device_a_test device_draft_test '
same "$(grep -c -- '_test --tool memcheck --leak-check full --report-api-errors no$' "$top/at-once")" 3

# From here on the benches are stand-ins, too, which also print what is no part of the table.
bench='echo "### Title"; echo noise >&2
    while [ $# -gt 1 ]; do
        [ "$1" = --json ] && printf "{\"results\": [\n]}\n" >"$2"
        shift
    done'
program "$folder/bin/bench_gpu" "$bench"

# Of the kernels' tests four at a time: these wait for a fifth, which does not come.
for name in c d e f g; do
    program "$folder/bin/device_${name}_test" "$device"'mkdir -p "$top/tests" && : >"$top/tests/$$"; i=0
        while [ "$(ls "$top/tests" | wc -l)" -le 4 ] && [ "$i" != 20 ]; do sleep 0.1; i=$((i + 1)); done
        ls "$top/tests" | wc -l >>"$top/tests-at-once"; rm "$top/tests/$$"'
done
expect 0 '^10 passed, 0 failed, 0 not run$' --only tests
at_once=$(sort -n "$top/tests-at-once" | tail -n 1)
if [ "$at_once" -gt 4 ] || [ "$at_once" -lt 2 ]; then fail "$at_once tests ran at once"; fi
rm "$folder"/bin/device_[c-g]_test

# ---- Groups. -------------------------------------------------------------------------------------------

expect 0 '^6 passed, 0 failed, 2 not run$' --only benches
says 'assert parts == ["device"] + ["bench_gpu " + p for p in ("steps", "products", "rules")] + ["peers products",
    "peers steps", "bench_gpu decode", "bench_gpu shapes"], parts
assert report["groups"] == "steps products rules peers decode shapes"'
lacks noise "$out/gpu.md"
same "$(logged bench-gpu-rules.err)" noise
expect 0 '^6 passed, 0 failed, 0 not run$' --only decode,tests
says 'assert parts[-1] == "bench_gpu decode" and report["suite"] is None, parts'
expect 3 'there is no group tset' --only tset,suite
expect 3 'names no group' --only ''

# ---- What is found out about a library. ----------------------------------------------------------------

FREE='NOT CONFORMANT' expect 0 '^suite, free, f32 +finding' --only modes
has ', 0 failed, found: suite, free, f32; of: modes' "$out/gpu.md"
has '^\| suite, free, f32 \| NOT CONFORMANT \|$' "$out/gpu.md"
FIXED=4 expect 0 '^suite, fixed-shape, bf16 +not run' --only modes
FIXED=3 expect 1 '^suite, fixed-shape, bf16 +FAILED' --only modes

# ---- What the tools see. --------------------------------------------------------------------------------

FAULT=racecheck expect 0 '^device_b_test racecheck +finding' --only sanitizers
says 'assert report["failed"] == 0 and outcome["device_b_test racecheck"] == "finding" and report["passed"] == 8, report'
has '^### What was found: device_b_test racecheck$' "$out/gpu.md"
has '^    ========= alarm of racecheck$' "$out/gpu.md"
FAULT=memcheck expect 1 '^compute-sanitizer +FAILED' --only memcheck
NCU='==ERROR== ERR_NVGPUCTRPERM' expect 0 '^ncu: refuses the counters +not run' --only profile
NCU='something else' expect 1 '^profile products +FAILED' --only profile
SILENT=1 expect 1 '^ncu has counted nothing$' --only profile
mv "$tools/ncu" "$top"
expect 0 '^ncu: not installed +not run' --only profile
mv "$top/ncu" "$tools"

# ---- Two runs for all. ---------------------------------------------------------------------------------

expect 0 ', 0 failed, 0 not run$' --part 1
says 'assert report["groups"] == "tests suite memcheck steps full", report'
expect 0 ', 0 failed, 2 not run$' --part 2
says 'assert report["groups"] == "products rules peers profile decode shapes modes sanitizers", report'
expect 3 '^ci/gpu: --part is 1 or 2' --part 3

# A level that its budget stops has not run; what it has found by then has failed.
STOPPED=1 expect 0 '^suite, full +not run' --only full
has '^CONFORMANT: 1 case at level full$' "$top/printed"
VERDICT='NOT CONFORMANT' expect 1 '^suite, full +FAILED' --only full

# ---- What fails. ---------------------------------------------------------------------------------------

VERDICT='NOT CONFORMANT' expect 1 '^suite +FAILED' --only suite,rules
says 'assert report["suite"]["verdict"] == "NOT CONFORMANT" and outcome["bench_gpu rules"] == "ok"'
FAULT=synccheck expect 1 '^device_b_test synccheck +FAILED' --only sanitizers
program "$folder/bin/device_b_test" "$device"' echo the bits differ; exit 1'
expect 1 '^the bits differ$' --only tests
program "$folder/bin/device_b_test" "$device"' echo not run: no GPU; exit 77'
expect 1 '^device_b_test +FAILED' --only tests # there is a device: it must run
says 'assert outcome["device_b_test, apart"] == "FAILED" and report["failed"] == 2 and not report["trouble"], report'
program "$folder/bin/device_b_test" "$device"' [ "$ASSAY_GPU_OVERLAP" = 0 ]'
program "$folder/bin/bench_gpu" '[ "$ASSAY_GPU_OVERLAP" = 0 ]'
expect 1 '^device_b_test, apart +ok' --only tests,rules
says 'assert outcome["bench_gpu rules"] == "ok" and report["failed"] == 1 and "overlap" in report["trouble"], report'
expect 1 '^bench_gpu rules +FAILED' --only rules
program "$folder/bin/bench_gpu" "$bench"
program "$folder/bin/device_b_test" "$device"' head -c 5000000 /dev/zero'
expect 0 '^5 passed' --only tests
same "$(logged device-b-test.out | wc -c)" 4000000
program "$folder/bin/device_b_test" "$device"

# A sanitizer that does not work here is one line, not one for every test.
mv "$tools/compute-sanitizer" "$top/checker"
program "$tools/compute-sanitizer" 'echo "========= Error: Device not supported"; exit 1'
expect 0 '^1 passed, 0 failed, 1 not run$' --only sanitizers
says 'assert outcome["compute-sanitizer: refuses the device"] == "not run"'
program "$tools/compute-sanitizer" 'echo something else; exit 1'
expect 1 '^1 passed, 1 failed, 0 not run$' --only sanitizers
mv "$top/checker" "$tools/compute-sanitizer"

# ---- What takes too long. ------------------------------------------------------------------------------

# A suite that hangs, and writes half a report: its worker has a group of processes of its own, and ends with it.
hangs='while [ "$1" != --json ]; do shift; done
    bash -c "set -m; sleep 1000 & echo \$! >$top/worker.pid"; printf "{\"verdict\": " >"$2"; sleep 1000'
program "$folder/bin/assay" "$hangs"
GPU_SECONDS=5 expect 1 '^suite +OUT OF TIME' --only suite
says 'assert report["suite"] is None and report["failed"] == 1, report'
worker_ended
# What hangs takes its own share of the time alone.
program "$folder/bin/bench_gpu" '[ "$2" != rules ] || { echo "### Half a table"; sleep 1000; }'$'\n'"$bench"
GPU_SECONDS=20 expect 1 '^bench_gpu rules +OUT OF TIME' --only rules,steps,decode,shapes,products
says 'assert len(report["benches"]) == 4 and report["passed"] == 5 and report["failed"] == 1, report'
has '^### Half a table \(bench_gpu rules\)$' "$out/gpu.md"
program "$folder/bin/bench_gpu" "$bench"
# Where nothing is left, parts have failed, too; but not the peers.
GPU_SECONDS=1 expect 1 '^device_b_test +OUT OF TIME' --only tests
echo 'import time; time.sleep(1000)' >"$folder/bin/peers.py"
GPU_SECONDS=3 expect 0 '^1 passed, 0 failed, 2 not run$' --only peers

# What is known is written before the end; and a signal ends the worker, too.
rm -f "$top/worker.pid"
PATH="$tools:$PATH" "$folder/gpu" --run --only tests,suite "$out" >"$top/printed" 2>&1 &
run=$!
for ((i = 0; i < 300; i++)); do
    [ ! -s "$top/worker.pid" ] || break
    sleep 0.1
done
says 'assert len(parts) == 6 and report["passed"] == 6, report'
kill -TERM "$run"
code=0 && wait "$run" || code=$?
same "$code" 143
says 'assert outcome["suite"] == "ENDED" and report["trouble"] == "ended by SIGTERM" and report["passed"] == 6, report'
has '^\| suite \| ENDED \|' "$out/gpu.md"
same "$(logged suite.err)" ''
same "$(tail -n 1 "$top/printed")" '6 passed, 1 failed, 0 not run'
worker_ended

# ---- The device. ---------------------------------------------------------------------------------------

program "$tools/nvidia-smi" 'exit 9'
program "$tools/grep" 'case "$*" in
    */proc/driver/nvidia/version) echo "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release" |
        '"$(command -v grep)"' "$1" "$2" ;;
    *) exec '"$(command -v grep)"' "$@" ;;
    esac'
expect 0 '^Stand-in "GPU", driver 580.159.04;' --only rules
program "$folder/bin/device_draft_test" 'echo "not run: no GPU (why)"; exit 77'
expect 0 '^not run: no GPU'
NODE=/dev/nvidia3 expect 3 'there is a GPU \(/dev/nvidia3\), but CUDA does not open it'
program "$folder/bin/device_draft_test" 'echo "there is a GPU, but it cannot be used (why)"; exit 1'
expect 3 'the GPU cannot be used'
says 'assert report["trouble"].endswith("cannot be used (why)") and outcome["device"] == "FAILED", report'
program "$folder/bin/device_draft_test" "$device"

# ---- What --prepare packs, and what the run unpacks. ---------------------------------------------------

repository=$top/repository prepared=$top/prepared
mkdir -p "$repository"/{ci,build,gpu/bench,vectors/models}
cp "$script" "$repository/ci/gpu"
program "$repository/ci/deps" ''
echo '{}' | tee "$repository/vectors/a.json" >"$repository/vectors/models/b.txt"
: >"$repository/gpu/bench/peers.py"
echo 'print("code")' >"$repository/gpu/check_code.py"
cp "$(command -v xz)" "$repository/build/kept_test"
cp "$(command -v xz)" "$repository/build/device_stale_test"
truncate -s 50M "$repository/large"
export repository
cp "$(command -v xz)" "$repository/build/assay"
mkdir -p "$repository/build/lib/assay"
cp "$(command -v xz)" "$repository/build/lib/assay/libassay_ref.so"
printf 'build/kept_test\nbuild/assay\nbuild/lib/assay/libassay_ref.so\n' >"$repository/build/gpu_run.txt"
program "$tools/cmake" ''
program "$tools/nvcc" ''
program "$tools/git" '[ "$1" = describe ] && echo def || printf "large\0"'

# prepare CODE TEXT
prepare() {
    local code=0
    PATH="$tools:$PATH" "$repository/ci/gpu" --prepare "$prepared" >"$top/printed" 2>&1 || code=$?
    same "$code" "$1"
    has "$2" "$top/printed"
}

prepare 0 "^prepared: $prepared, 1 MiB, the checkout 50 MiB; commit def$"
tar -tJf "$prepared/carried.tar.xz" >"$top/carried"
has '^bin/kept_test$' "$top/carried"
has '^lib/assay/libassay_ref.so$' "$top/carried"
has '^lib/liblzma' "$top/carried"
has '^lib/suite/liblzma' "$top/carried"
has '^share/assay/vectors/a.json$' "$top/carried"
lacks 'lib/libc\.|stale|b\.txt' "$top/carried"
truncate -s 60M "$repository/large"
prepare 3 'the folder and the checkout have 61 MiB; 60 is what they may have'
program "$tools/ldd" 'echo "	libgone.so.1 => not found"'
prepare 3 'build/kept_test needs libgone.so.1, which is not found'
echo build/gone_test >"$repository/build/gpu_run.txt"
prepare 3 'build/gone_test is not built'

for how in xz python3; do
    rm -rf "${folder:?}/old" && mkdir "$folder/old"
    tar -C "$folder" -cJf "$folder/carried.tar.xz" bin share
    mv "$folder/bin" "$folder/share" "$folder/old"
    expect 0 '^5 passed' --only tests
    [ -d "$folder/bin" ] || fail "nothing was unpacked with $how"
    program "$tools/tar" 'case "$*" in *-xJf*) exit 2 ;; esac; exec '"$(command -v tar)"' "$@"'
done
rm "$folder/carried.tar.xz" "$folder/bin/bench_gpu"
expect 3 'is not prepared'
echo "ci/gpu: all as expected"
