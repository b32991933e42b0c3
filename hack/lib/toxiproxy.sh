# shellcheck shell=bash
# Sourced after toolchain.sh: the proxy that disturbs connections in test/chaos and hack/chaos. Installed once, into the cache.

toxiproxy=$cache/toxiproxy/server
toxiproxy_version=v2.5.0

# Toxiproxy's server at $toxiproxy.
ensure_toxiproxy() { install_go_program "${toxiproxy%/*}" server "github.com/Shopify/toxiproxy/v2/cmd/server@$toxiproxy_version"; }
