# shellcheck shell=bash
# Sourced after toolchain.sh: the object stores that the tests of warehouse destinations write to. Each is installed once, into the cache.

PATH=$PATH:/usr/local/go/bin
object_stores=$cache/object-stores
versitygw_version=v1.8.0
fake_gcs_version=v1.56.1
azurite_version=3.36.0

# install_store NAME MODULE@VERSION
install_store() {
  local mark=$object_stores/bin/$1.${2##*@}
  [ -e "$mark" ] && return
  command -v go >/dev/null || install_system_package "to build $1" golang-go || die "needs Go to build $1: install it, then try again"
  say "building $1 ${2##*@}"
  mkdir -p "$object_stores/bin"
  CGO_ENABLED=0 GOBIN=$object_stores/bin go install -ldflags '-s -w' "$2" 2>"$object_stores/$1.log" || die "$1: $(tail -n 1 "$object_stores/$1.log")"
  rm -f "$object_stores/bin/$1".v*
  touch "$mark"
}

# An S3 server, a GCS server and an Azure Blob server in $object_stores.
ensure_object_stores() {
  install_store versitygw "github.com/versity/versitygw/cmd/versitygw@$versitygw_version"
  install_store fake-gcs-server "github.com/fsouza/fake-gcs-server@$fake_gcs_version"
  local azurite=$object_stores/azurite
  if [ ! -e "$azurite/.$azurite_version" ]; then
    say "installing azurite $azurite_version"
    mkdir -p "$azurite"
    npm install --prefix "$azurite" --no-audit --no-fund --loglevel error "azurite@$azurite_version" >/dev/null || die 'could not install azurite'
    touch "$azurite/.$azurite_version"
  fi
}
