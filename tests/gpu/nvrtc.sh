#!/usr/bin/env bash
# Brings NVIDIA's run-time compiler and its assembler, as Python wheels, into a folder, and compiles every kernel with them.
# Usage: tests/gpu/nvrtc.sh [FOLDER]; what is there already is not fetched again. With UPDATE_PTX=1 it writes the PTX that is
# shipped anew first.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(mkdir -p "${1:-target/nvrtc}" && cd "${1:-target/nvrtc}" && pwd)
# The newest release that compiles for compute capability 7.0.
if [ ! -e "$folder/nvidia/cuda_nvrtc" ] || [ ! -e "$folder/nvidia/cuda_nvcc" ]; then
    python3 -m pip install --quiet --no-deps --target "$folder" \
        nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvcc-cu12==12.9.86
fi
export COLLC_NVRTC="$folder/nvidia/cuda_nvrtc/lib"
export COLLC_PTXAS="$folder/nvidia/cuda_nvcc/bin/ptxas"
chmod +x "$COLLC_PTXAS"

if [ -n "${UPDATE_PTX:-}" ]; then
    cargo test --locked -p coll-cuda --test nvrtc -- --nocapture shipped
    unset UPDATE_PTX
fi
cargo test --locked -p coll-cuda --test nvrtc --test shipped -- --nocapture
