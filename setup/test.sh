#!/bin/sh
# Checks the types and the style, then runs the tests in a world of their own (world.sh says what that is):
#   npm test                             all of them
#   npm test -- src/core test/x.test.ts  those in a folder, or one file
#   npm test -- --test-name-pattern=ban  words with a dash go to node --test
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/setup/lib.sh"

main() {
  cd "$ROOT"
  need_javascript
  step types node_modules/.bin/tsc --noEmit
  step style node_modules/.bin/biome check
  options="--test --test-reporter=spec --test-concurrency=$(concurrency) --test-timeout=300000"
  places=
  for word in "$@"; do
    case $word in -*) options="$options $word" ;; *) places="$places $word" ;; esac
  done
  # shellcheck disable=SC2086 # lists of words
  files=$(find ${places:-src test} -name '*.test.ts' | sort)
  [ -n "$files" ] || die "no *.test.ts in${places:- src test}"
  # shellcheck disable=SC2086
  exec sh setup/world.sh node $options $files
}

step() {
  name=$1 began=$(date +%s%N)
  shift
  "$@" || die "$name: not clean"
  say "$name: clean, $((($(date +%s%N) - began) / 1000000)) ms"
}

# Tests wait for containers more than they compute, so never fewer than two at once.
concurrency() { n=$(nproc); echo $((n < 2 ? 2 : n > 8 ? 8 : n)); }

main "$@"
