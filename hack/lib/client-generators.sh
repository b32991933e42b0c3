# shellcheck shell=bash
# Sourced after toolchain.sh: the generators that clients are made with from the OpenAPI document. Each is installed once, into the cache.

client_generators=$cache/client-generators
openapi_typescript_version=7.13.0
openapi_fetch_version=0.17.0
# Of the generator, and what the client is checked with.
generator_typescript_version=5.9.3
openapi_python_client_version=0.29.1
oapi_codegen_version=v2.8.2

# The generators of TypeScript, Go and, where there is Python 3.10 or newer, Python clients in $client_generators.
ensure_client_generators() {
  local typescript=$client_generators/typescript mark=.$openapi_typescript_version-$openapi_fetch_version-$generator_typescript_version
  if [ ! -e "$typescript/$mark" ]; then
    say "installing openapi-typescript $openapi_typescript_version and openapi-fetch $openapi_fetch_version"
    mkdir -p "$typescript"
    npm install --prefix "$typescript" --no-audit --no-fund --loglevel error "openapi-typescript@$openapi_typescript_version" \
      "openapi-fetch@$openapi_fetch_version" "typescript@$generator_typescript_version" >/dev/null || die 'could not install openapi-typescript'
    touch "$typescript/$mark"
  fi
  install_go_program "$client_generators/bin" oapi-codegen "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@$oapi_codegen_version"
  if python_package openapi-python-client "$openapi_python_client_version" openapi-python-client; then
    ln -sfn "$cache/openapi-python-client-$openapi_python_client_version" "$client_generators/python"
  else
    say 'the Python client is left out'
  fi
}
