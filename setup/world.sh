#!/bin/sh
# Runs a command in a world of its own, where tests may do what they like: sh setup/world.sh COMMAND ARGUMENT…
#
# As root the world has a dockerd of its own, and its own network, processes and /run: the machine's engine, services
# and ports cannot be reached from it, nor can any network outside, and when the command ends (or this script is
# stopped) all that was started in it is gone. Any number of worlds live side by side. As a normal user the command
# gets the engine that is there. Either way the engine has the image fairlead-test/busybox:1.
#
# The command's environment is the caller's, but for:
#   DOCKER_HOST          the address of the engine
#   HOME, TMPDIR         empty folders, removed at the end
#   PATH                 with Node.js 24 and node_modules/.bin in front
#   NODE_COMPILE_CACHE   .cache/node of the checkout
#   DOCKER_*, COMPOSE_*, FAIRLEAD_*   otherwise unset
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/setup/lib.sh"

PACKAGES="busybox-static iproute2 docker-registry mariadb-client-core mariadb-server-core nginx-light postgresql redis-tools" # what the tests use of Debian
IMAGE=fairlead-test/busybox:1

main() {
  [ $# -gt 0 ] || die "usage: sh setup/world.sh COMMAND ARGUMENT…"
  need_javascript
  need_tools || exit 1
  began=$(date +%s%N)
  sweep_dead_worlds
  world=$(mktemp -d /tmp/fairlead-world.XXXXXX)
  trap 'end 129' HUP
  trap 'end 130' INT
  trap 'end 143' TERM
  chmod 755 "$world" # the tests' servers run as other users too
  if [ ! -e /proc/self/fd/0 ]; then exec </dev/null; fi
  exec 3<&0 9>"$world/alive"
  flock 9 # held by all that lives in the world
  set_environment
  if is_root; then
    unshare --net --mount --pid --fork --kill-child --mount-proc sh "$0" --inside "$world" "$began" "$@" <&3 &
  else
    beside_others "$@" <&3 &
  fi
  job=$!
  exec 9>&-
  status=0
  wait "$job" || status=$?
  job=
  end "$status"
}

need_tools() {
  # shellcheck disable=SC2086 # a list of names
  if is_root; then need_dockerd && need_compose && need_packages $PACKAGES; return; fi
  address=$(engine_ping) || { say "no container engine for the tests at $address. $(engine_advice "$address")"; return 1; }
  have docker || { say "the command docker is missing: install it"; return 1; }
  if ! have busybox || ldd "$(command -v busybox)" >/dev/null 2>&1; then
    say "a static busybox is missing. As root, once: sh $ROOT/setup/install.sh busybox-static"
    return 1
  fi
  have docker-registry || { say "docker-registry is missing. As root, once: sh $ROOT/setup/install.sh docker-registry"; return 1; }
  need_compose
}

set_environment() {
  for name in $(env | sed -n 's/^\(\(DOCKER\|COMPOSE\|FAIRLEAD\)_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$name"; done
  mkdir -p "$world/home/.docker" "$world/tmp"
  if [ -d "${HOME:-}/.docker/cli-plugins" ]; then ln -s "$HOME/.docker/cli-plugins" "$world/home/.docker/"; fi
  export DOCKER_HOST="${address:-unix://$world/docker.sock}" HOME="$world/home" TMPDIR="$world/tmp"
  export PATH="$ROOT/node_modules/.bin:$PATH" NODE_COMPILE_CACHE="$ROOT/.cache/node"
}

# The first process of the world: when it ends, the kernel ends all others, and unmounts what they mounted.
inside() {
  world=$1 began=$2
  shift 2
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -m 1777 /run/lock
  busybox ip link set lo up
  # The systemd driver is not for us: systemd knows our processes by other numbers.
  cat >"$world/daemon.json" <<-JSON
	{
	  "hosts": ["$DOCKER_HOST"],
	  "data-root": "$world/engine",
	  "cgroup-parent": "/${world##*/}",
	  "exec-opts": ["native.cgroupdriver=cgroupfs"],
	  "default-address-pools": [{ "base": "10.200.0.0/16", "size": 24 }]
	}
	JSON
  dockerd --config-file "$world/daemon.json" >"$world/dockerd.log" 2>&1 </dev/null &
  engine=$!
  until docker version >/dev/null 2>&1; do
    kill -0 "$engine" 2>/dev/null || { tail -n 3 "$world/dockerd.log" >&2; die "the dockerd of the tests does not start"; }
    sleep 0.1
  done
  import_image
  say "a world of its own, with its own engine: ready in $((($(date +%s%N) - began) / 1000000)) ms"
  status=0
  "$@" || status=$?
  exit "$status"
}

# A normal user's tests share the engine with whatever else is on it; the image goes when it was not there before.
beside_others() {
  found=$(docker images -q "$IMAGE")
  if [ -z "$found" ]; then import_image; fi
  status=0
  "$@" || status=$?
  # What every standard test world shares (src/testing/agent.ts).
  docker rm -f fairlead-test-idle >/dev/null 2>&1 || true
  docker volume rm fairlead-test-volume >/dev/null 2>&1 || true
  docker network rm fairlead-test-network >/dev/null 2>&1 || true
  docker rmi fairlead-test/spare:1 >/dev/null 2>&1 || true
  if [ -z "$found" ]; then docker rmi "$IMAGE" >/dev/null || true; fi
  exit "$status"
}

import_image() {
  files=$world/image
  mkdir -p "$files/bin" "$files/tmp" "$files/etc" "$files/www"
  cp -L "$(command -v busybox)" "$files/bin/busybox"
  for name in $(busybox --list); do
    if [ "$name" != busybox ]; then ln -s busybox "$files/bin/$name"; fi
  done
  echo 'root:x:0:0:root:/:/bin/sh' >"$files/etc/passwd"
  echo ok >"$files/www/index.html"
  tar -C "$files" -c . | docker import --change 'ENV PATH=/bin' --change 'CMD ["/bin/sh"]' - "$IMAGE" >/dev/null
}

end() {
  trap '' HUP INT TERM
  if [ -n "${job:-}" ]; then
    # The one child: the first process of the world, or the normal user's command, which may still tidy up.
    first=$(cat "/proc/$job/task/$job/children" 2>/dev/null) || first=
    if is_root; then signal=KILL; else signal=TERM; fi
    # shellcheck disable=SC2086 # ends in a blank
    kill -s "$signal" ${first:-"$job"} 2>/dev/null || true
    wait "$job" 2>/dev/null || true
  fi
  remove_world "$world"
  exit "$1"
}

# The world of a script that was killed before it could tidy up; a living one holds its lock.
sweep_dead_worlds() {
  find /tmp -maxdepth 1 -name 'fairlead-world.*' -user "$(id -u)" -mmin +1 | while read -r dead; do
    if flock -n "$dead/alive" true; then remove_world "$dead"; fi
  done
}

remove_world() {
  for group in "/sys/fs/cgroup/${1##*/}" /sys/fs/cgroup/*/"${1##*/}"; do
    if [ -d "$group" ]; then find "$group" -depth -type d -exec rmdir {} + || true; fi
  done
  rm -rf "$1"
}

if [ "${1:-}" = --inside ]; then shift; inside "$@"; else main "$@"; fi
