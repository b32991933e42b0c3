# shellcheck shell=bash
# Sourced after toolchain.sh: the object stores that the tests of warehouse destinations write to. Each is installed once, into the cache.

object_stores=$cache/object-stores
versitygw_version=v1.8.0
fake_gcs_version=v1.56.1
azurite_version=3.36.0

# An S3 server, a GCS server and an Azure Blob server in $object_stores.
ensure_object_stores() {
  install_go_program "$object_stores/bin" versitygw "github.com/versity/versitygw/cmd/versitygw@$versitygw_version"
  install_go_program "$object_stores/bin" fake-gcs-server "github.com/fsouza/fake-gcs-server@$fake_gcs_version"
  local azurite=$object_stores/azurite
  if [ ! -e "$azurite/.$azurite_version" ]; then
    say "installing azurite $azurite_version"
    mkdir -p "$azurite"
    npm install --prefix "$azurite" --no-audit --no-fund --loglevel error "azurite@$azurite_version" >/dev/null || die 'could not install azurite'
    touch "$azurite/.$azurite_version"
  fi
}
