#!/usr/bin/env bash
# What `ci/gpu --run` makes of a folder, where the benches are those of the emulator and the tests and the
# sanitizer are stand-ins: ci_gpu_test.sh CI_GPU DRY_BENCH_GPU DRY_BENCH_CHUNKS
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
program "$folder/bin/peers.py" ''
echo 'import sys; sys.exit(77)' >"$folder/bin/peers.py"
# shellcheck disable=SC2016 # the stand-in expands it
program "$folder/tools/compute-sanitizer" '[ "$2" != "$FAULT" ] || exit 9; shift 4; exec "$@"'

expect 0 '^13 passed, 0 failed$' # the device, 2 tests, 8 under the sanitizer, 2 benches
python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
assert report["passed"] == 13 and report["commit"] == "abc", report
assert [b["dry"] for b in report["benches"]] == [True, True]
assert [p["outcome"] for p in report["parts"] if p["part"] == "peers"] == ["not run"]' "$folder/out/gpu.json"
grep -q 'not run: peers' "$folder/out/gpu.md"
grep -q '^| device_a_test racecheck | ok |' "$folder/out/gpu.md"

FAULT=racecheck expect 1 '^device_b_test racecheck +FAILED'
program "$folder/bin/device_b_test" 'echo the bits differ; exit 1'
expect 1 '^the bits differ$'
program "$folder/bin/device_b_test" 'echo not run: no GPU; exit 77'
expect 1 '^device_b_test +FAILED' # there is a device: it must run
program "$folder/bin/device_b_test" 'exit 0'

if [ ! -e /dev/nvidia0 ]; then
    program "$folder/bin/bench_gpu" 'echo "not run: no GPU (why)"; exit 77'
    expect 0 '^not run: no GPU'
fi
rm "$folder/bin/bench_gpu"
expect 3 'is not prepared'
echo "ci/gpu --run: all as expected"
