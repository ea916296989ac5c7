#!/bin/sh
# Runs the agent of this checkout, after getting what it needs; its arguments are the agent's.
# FAIRLEAD_NO_INSTALL=1 forbids installing anything. Without a container engine the agent runs all the same, degraded.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/setup/lib.sh"

need_javascript
{ need_engine && need_compose; } || say "starting all the same; what needs the engine answers 503 until it is there"
export NODE_COMPILE_CACHE="$ROOT/.cache/node"
# Answers are short-lived: with a small young generation the memory stays small, also while a million lines are sent.
exec "$NODE" --max-semi-space-size=4 "$ROOT/src/main.ts" "$@"
