#!/bin/sh
# Runs the benchmarks in a world of their own: npm run bench -- NAME…
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/setup/lib.sh"

have wrk || need_packages wrk || exit 1
cd "$ROOT"
exec sh setup/world.sh node bench/main.ts "$@"
