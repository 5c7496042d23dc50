#!/usr/bin/env bash
# Gates an implementation in a CI job. Copy it into your project; the two job files beside it call it.
#   IUT     what to test: plugin:FILE.so, or exec:"COMMAND" (required)
#   ASSAY   a checkout of Assay (default: the one this script lies in)
#   LEVEL   smoke, full or deep (default full)
#   REQUIRE layers that must be judged, with blanks between: `law` of a kernel, `engine-law` of an engine (default none)
#   OUT     folder for the reports (default assay-report)
# The job fails unless the exit code is 0: conformant.
set -euo pipefail
: "${IUT:?set IUT, for example IUT=plugin:build/libmy_verifier.so}"
assay=${ASSAY:-$(cd "$(dirname "$0")/../.." && pwd)}
out=${OUT:-assay-report}
mkdir -p "$out"
required=()
for layer in ${REQUIRE:-}; do required+=(--require "$layer"); done
exec "$assay/ci/gate" --iut "$IUT" --level "${LEVEL:-full}" "${required[@]}" \
    --junit "$out/junit.xml" --json "$out/result.json" --html "$out/report.html" --log "$out/events.ndjson" "$@"
