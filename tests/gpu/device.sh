#!/usr/bin/env bash
# On a machine with a CUDA device: the tests that need one, the same under compute-sanitizer, and what is measured, as a table.
# Usage: tests/gpu/device.sh [FOLDER]; the folder (target/device) gets what was printed. PROFILE=dev builds without optimisation.
# Ends with 1 where there is no device, a test fails or the sanitizer finds something.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mkdir -p "${1:-target/device}" && cd "${1:-target/device}" && pwd)
profile=${PROFILE:-release}

program=$(cargo test --locked --profile "$profile" -p coll-gpu --test device --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
if [ ! -x "$program" ]; then
    echo "tests/gpu/device.sh: cargo built no test program \`device\` of coll-gpu" >&2
    exit 1
fi

# The stand-in would be found in the place of a device.
unset CUDA_STAND_IN
door=$("$program" --exact door --nocapture)
if grep -q 'no CUDA device' <<<"$door"; then
    grep 'no CUDA device' <<<"$door" >&2
    echo "tests/gpu/device.sh: it needs a machine with a CUDA device" >&2
    exit 1
fi
grep -E '^(.* \.\.\. )?(device [0-9]+:|CUDA )' <<<"$door" | tee "$folder/devices.txt"

failed=0
# Runs a command, keeps what it prints, and notes whether it failed.
try() {
    local name=$1
    shift
    echo "== $name"
    if ! "$@" 2>&1 | tee "$folder/$name.txt"; then
        echo "== $name: FAILED" >&2
        failed=1
    fi
}

try tests "$program" --test-threads=1 --nocapture

# The sanitizer looks at this process: ranks that are processes, and the stand-in's child, are not for it.
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        try "$tool" compute-sanitizer --tool "$tool" --error-exitcode 1 "$program" --test-threads=1 --nocapture \
            --skip processes:: --skip stand_in::
    done
else
    echo "== compute-sanitizer is not on PATH: neither memcheck nor racecheck was run"
fi

try measured "$program" --exact marks::table --ignored --nocapture
exit "$failed"
