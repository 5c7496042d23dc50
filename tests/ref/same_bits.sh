#!/bin/sh
# Builds the reference with every compiler present at -O1 and -O3 and compares digest.c's number
# over builds, machine levels, 1 to 3 threads, and a libm without hardware fma.
#   same_bits.sh SOURCE_ROOT SCRATCH_FOLDER
set -eu
root=$1 scratch=$2
no_fma=glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4
rm -rf "$scratch"
mkdir -p "$scratch"

build() { # of $compiler, $optimisation, $program
    flags="-std=c11 $optimisation -ffp-contract=off -fno-fast-math -fopenmp -I$root"
    loops="$flags -fno-math-errno -fno-trapping-math"
    objects=
    level() { # NAME FLAGS...: the hot loops at that level
        name=$1
        shift
        for part in rows dense; do
            $compiler $loops "$@" "-DAS_LEVEL=$name" -c "$root/ref/num/${part}_level.c" \
                -o "$program-$part-$name.o"
            objects="$objects $program-$part-$name.o"
        done
    }
    level baseline
    if [ "$(uname -m)" = x86_64 ]; then
        level v3 -mavx2 -mfma
        level v4 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl
    fi
    $compiler $flags $(find "$root/ref" -name '*.c' ! -name '*_level.c' ! -path '*/load/*') \
        "$root/tests/ref/digest.c" $objects -lm -o "$program"
}

runs=0
expected=
compare() { # WHAT, then the command
    what=$1
    shift
    line=$("$@")
    echo "${line% *}  $what, level ${line#* }"
    : "${expected:=${line% *}}"
    [ "${line% *}" = "$expected" ] || { echo "same_bits: $what differs from the first" >&2; exit 1; }
    runs=$((runs + 1))
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || { echo "$compiler is not here: not compared"; continue; }
    for optimisation in -O1 -O3; do
        program=$scratch/$compiler$optimisation
        build
        for level in baseline v3 v4; do
            # A level that the processor lacks is refused: then the run is of "auto" and says so.
            for threads in 1 2 3; do
                compare "$compiler $optimisation, $threads threads" \
                    env ASSAY_LEVEL=$level OMP_NUM_THREADS=$threads "$program"
            done
        done
        compare "$compiler $optimisation, software fma" \
            env ASSAY_LEVEL=baseline GLIBC_TUNABLES=$no_fma "$program"
    done
done
[ $runs -ge 20 ] || { echo "same_bits: only $runs runs; is there a compiler?" >&2; exit 1; }
echo "same_bits: $runs runs, one digest"
