#!/usr/bin/env bash
# What `ci/gpu --run` makes of a folder, where the benches are those of the emulator and the tests, the
# suite and the sanitizer are stand-ins: ci_gpu_test.sh CI_GPU DRY_BENCH_GPU DRY_BENCH_CHUNKS
set -euo pipefail
script=$1 bench_gpu=$2 bench_chunks=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/lib" "$folder/tools"
cp "$script" "$folder/gpu"
cp "$bench_gpu" "$folder/bin/bench_gpu"
cp "$bench_chunks" "$folder/bin/bench_chunks"
echo abc >"$folder/commit"

# program PATH LINES: a stand-in.
program() {
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}

# expect CODE TEXT: runs the folder; its exit code and a line of what it prints.
expect() {
    local code=0
    PATH="$folder/tools:$PATH" "$folder/gpu" --run "$folder/out" >"$folder/printed" 2>&1 || code=$?
    if [ "$code" != "$1" ] || ! grep -qE "$2" "$folder/printed"; then
        echo "expected $1 and \"$2\"; got $code and:"
        cat "$folder/printed"
        exit 1
    fi
}

program "$folder/bin/device_a_test" 'exit 0'
program "$folder/bin/device_b_test" 'exit 0'
# shellcheck disable=SC2016 # the stand-ins expand these
program "$folder/bin/device_pair_test" '[ -d "$1/target" ]'
# shellcheck disable=SC2016
program "$folder/bin/device_draft_test" 'echo "cases: $1"'
mkdir -p "$folder/share/assay/vectors/models/target"
# shellcheck disable=SC2016
program "$folder/bin/assay" '[ "$1 $2 $4 $5 ${10}" = "run --iut --level full --json" ] || exit 2
    [ -f "${3#plugin:}" ] && printf "{\"verdict\": \"%s\",\n \"cases\": []\n}" "$VERDICT" >"${11}"
    [ "${16} ${17}" = "--traces $(dirname "${11}")/traces.json" ] || exit 2
    echo "$VERDICT: 1 case"; [ "$VERDICT" = CONFORMANT ]'
# shellcheck disable=SC2016
program "$folder/bin/traces_gpu" '[ -d "$2/models" ] && echo "{}" >"$1"'
: >"$folder/bin/libassay_gpu.so"
export VERDICT=CONFORMANT
program "$folder/bin/peers.py" ''
echo 'import sys; sys.exit(77)' >"$folder/bin/peers.py"
# shellcheck disable=SC2016 # the stand-in expands it
program "$folder/tools/compute-sanitizer" '[ "$2" != "$FAULT" ] || exit 9; shift 4; exec "$@"'

expect 0 '^24 passed, 0 failed$' # the device, 4 tests, traces, the suite, 5 benches, 12 under the sanitizer
python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
assert report["passed"] == 24 and report["commit"] == "abc", report
assert report["suite"] == {"verdict": "CONFORMANT", "cases": []}
assert [(b["bench"], b["dry"]) for b in report["benches"]] == [
    ("Grouped and flat chunk sums", True)] + 4 * [("Kernels and steps", True)]
assert [{r["what"] for r in b["results"] if "unit" not in r} for b in report["benches"][1:]] == [
    {"rule"}, {"step"}, {"decoding"}, {"product"}]
names = [p["part"] for p in report["parts"]]
assert names.index("traces") < names.index("suite") < names.index("bench_chunks") < names.index("device_a_test memcheck")
assert not any(n.startswith("device_pair_test ") for n in names), names
assert [p["outcome"] for p in report["parts"] if p["part"].startswith("peers")] == 2 * ["not run"]' "$folder/out/gpu.json"
grep -q 'not run: peers products, not run: peers steps' "$folder/out/gpu.md"
grep -q '^| device_a_test racecheck | ok |' "$folder/out/gpu.md"
grep -q '^CONFORMANT: 1 case$' "$folder/out/gpu.md"
grep -q '^| dry | BF16 | 70 |' "$folder/out/gpu.md"
grep -q '^cases: $' "$folder/out/device-draft-test.log"
grep -q '^cases: 40$' "$folder/out/device-draft-test-memcheck.log"

# From here on the benches are stand-ins, too.
for bench in bench_gpu bench_chunks; do
    # shellcheck disable=SC2016
    program "$folder/bin/$bench" 'while [ $# -gt 1 ]; do
        [ "$1" = --json ] && printf "{\"results\": [\n]}\n" >"$2"
        shift
    done'
done
VERDICT='NOT CONFORMANT' expect 1 '^suite +FAILED'
python3 -c 'import json, sys
assert json.load(open(sys.argv[1]))["suite"]["verdict"] == "NOT CONFORMANT"' "$folder/out/gpu.json"
FAULT=racecheck expect 1 '^device_b_test racecheck +FAILED'
program "$folder/bin/device_b_test" 'echo the bits differ; exit 1'
expect 1 '^the bits differ$'
program "$folder/bin/device_b_test" 'echo not run: no GPU; exit 77'
expect 1 '^device_b_test +FAILED' # there is a device: it must run
program "$folder/bin/device_b_test" 'exit 0'

# A suite that hangs, and writes half a report, takes its own share of the time alone; where nothing is
# left, parts have failed, too.
# shellcheck disable=SC2016
program "$folder/bin/assay" 'printf "{\"verdict\": " >"${11}"; sleep 100'
GPU_SECONDS=10 expect 1 '^suite +OUT OF TIME'
grep -q '^| bench_gpu steps | ok |' "$folder/out/gpu.md"
python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
assert report["suite"] is None and len(report["benches"]) == 5, report' "$folder/out/gpu.json"
GPU_SECONDS=1 expect 1 '^device_b_test initcheck +OUT OF TIME'

# What --prepare packs is unpacked.
tar -C "$folder" -czf "$folder/carried.tar.gz" bin share
rm -r "${folder:?}/bin" "${folder:?}/share"
GPU_SECONDS=1 expect 1 '^suite +OUT OF TIME'
rm "$folder/carried.tar.gz"

if [ ! -e /dev/nvidia0 ]; then
    program "$folder/bin/bench_gpu" 'echo "not run: no GPU (why)"; exit 77'
    expect 0 '^not run: no GPU'
fi
rm "$folder/bin/bench_gpu"
expect 3 'is not prepared'
echo "ci/gpu --run: all as expected"
