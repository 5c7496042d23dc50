#!/usr/bin/env bash
# Which library `assay run --iut gpu` takes: a device that is there and cannot be used is no reason for
# the emulator. which_test.sh ASSAY CC
set -eu
assay=$1 cc=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$assay" "$folder/assay"
libraries=$folder/lib/assay
mkdir -p "$libraries"

# takes THERE ABSENT TEXT: with a stand-in for libassay_gpu.so beside the program and no emulator, it says TEXT.
takes() {
    "$cc" -shared -fPIC -o "$libraries/libassay_gpu.so" -x c - <<EOF
int ag_has_device(void) { return $1; }
const char *ag_absent(void) { return $2; }
const void *iut_entry(void) { return 0; }
EOF
    says "there $1, absent $2" "$3"
}

# says WHAT TEXT
says() {
    local said
    said=$("$folder/assay" run --iut gpu --level smoke --only 'pool.values/lru-text' 2>&1) || true
    [[ $said == *"$2"* ]] && return
    printf '%s: no "%s" in\n%s\n' "$1" "$2" "$said"
    exit 1
}

takes 0 '"none"' 'gpu cannot be had: none; and there is no libassay_gpu_emu.so'
takes 1 '"broken"' 'libassay_gpu.so: iut_entry returned NULL'
takes 1 0 'libassay_gpu.so: iut_entry returned NULL'
echo 'int nothing;' | "$cc" -shared -fPIC -o "$libraries/libassay_gpu.so" -x c -
says "of another build" 'libassay_gpu.so is of another build: build it anew'
echo 'no library' >"$libraries/libassay_gpu.so"
says "no library" 'cannot load the plugin: '
rm "$libraries/libassay_gpu.so"
says "none" 'gpu cannot be had: there is no libassay_gpu.so, for which nvcc is needed; and there is no'
echo "as expected"
