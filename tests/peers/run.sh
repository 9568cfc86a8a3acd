#!/usr/bin/env bash
# Measures collc beside its peers, and prints its time over the best peer's, cell by cell, with geometric means.
#   run.sh DIR [--install-only | --no-install] [--with-torch] [-- peers.py options]
# DIR is where the peers are installed, and where the lines go: DIR/lines.jsonl, written anew.
# Environment: SKIP_GLOO=1 and SKIP_INTEL=1 leave those peers out; COLLC names a collc that is built already.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -ge 1 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
dir=$1; shift
install=() only=0
while [ $# -gt 0 ]; do
  case $1 in
    --install-only) only=1; install+=("$1") ;;
    --no-install|--with-torch) install+=("$1") ;;
    --) shift; break ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
  shift
done
[ $only = 1 ] && exec "$here/run_peers.sh" "$dir" "${install[@]}"

root=$(cd "$here/../.." && pwd)
if [ -z "${COLLC:-}" ]; then
  cargo build --release --manifest-path "$root/Cargo.toml" -p collc >&2
  target=$(cargo metadata --manifest-path "$root/Cargo.toml" --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
  COLLC=$target/release/collc
fi
mkdir -p "$dir"
lines=$dir/lines.jsonl
: > "$lines"
bench="$COLLC bench --format jsonl --ranks {ranks} --ops {ops} --sizes {sizes} --round {round} --target {target} \
--min-small {min_small} --min-big {min_big}"
configs=ompi-tcp,mpich-ofi-tcp,ompi-sm,mpich-shm-p2p
[ -n "${SKIP_INTEL:-}" ] || configs=$configs,impi-tcp,impi-shm
[ -n "${SKIP_GLOO:-}" ] || configs=$configs,gloo-ring
# Options that follow win over those before.
"$here/run_peers.sh" "$dir" "${install[@]}" -- --configs "$configs" --ranks 2,4,8 --rounds 3 \
  --target 0.05 --min-big 3 --out "$lines" \
  --extra "$bench --transport tcp" --extra "$bench --transport shm" "$@"
# What the machine can do at all, in the same minutes.
"$dir/build/limits" >> "$lines"
python3 "$here/summarize.py" "$lines" --mode ratio --ours collc
