# shellcheck shell=bash
# Sourced after toolchain.sh: Helm, kubeconform, promtool and the JSON schemas of the objects in our chart. Each is installed once, into the cache.

chart_tools=$cache/chart-tools
helm_version=v4.3.1
kubeconform_version=v0.8.0
# The last release of each minor version that the chart supports.
kubernetes_schema_versions=(v1.30.14 v1.31.14 v1.32.13 v1.33.13 v1.34.4 v1.35.4 v1.36.3)
gateway_api_version=v1.4.1
prometheus_operator_version=v0.85.0
# Where promtool is built.
prometheus_version=v0.309.1

ensure_helm() { install_go_program "$chart_tools/bin" helm "helm.sh/helm/v4/cmd/helm@$helm_version"; }

# pack_chart SOURCE DIRECTORY: writes the chart in SOURCE into DIRECTORY as Helm packs it, and prints the name of the file.
pack_chart() {
  ensure_helm
  "$chart_tools/bin/helm" package "$1" --destination "$2" | sed -n 's/^.* saved it to: //p'
}

# schemas_of MODULE VERSION DIRECTORY: the module's schemas of its objects, from a temporary module cache.
schemas_of() {
  local modules source
  [ -e "$3/.$2" ] && return
  ensure_go 'to fetch schemas of Kubernetes'
  say "fetching the schemas of $1 $2"
  modules=$(mktemp -d)
  source=$(cd "$modules" && GOMODCACHE=$modules GOFLAGS=-modcacherw go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  [ -n "$source" ] || die "the module $1 $2 could not be fetched"
  rm -rf "$3"
  node "$root/hack/object-schemas.ts" "$source" "$3"
  touch "$3/.$2"
  rm -rf "$modules"
}

# unpack_promtool DIRECTORY: out of the system's package, which is not installed: it would start a server. False where there is none.
unpack_promtool() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  say 'fetching promtool with apt-get'
  as_root apt-get update -qq >/dev/null && (cd "$1" && apt-get download -qq prometheus 2>/dev/null && dpkg-deb -x ./prometheus_*.deb .) && mv "$1/usr/bin/promtool" "$1"
}

# build_promtool DIRECTORY: without service discovery, most of Prometheus.
build_promtool() {
  ensure_go 'to build promtool'
  say "building promtool $prometheus_version (some minutes, then cached)"
  printf 'module tools\n\ngo 1.26.0\n\nrequire github.com/prometheus/prometheus %s\n' "$prometheus_version" >"$1/go.mod"
  (cd "$1" && GOFLAGS=-mod=mod CGO_ENABLED=0 go build -tags remove_all_sd -ldflags '-s -w' -o promtool github.com/prometheus/prometheus/cmd/promtool) 2>"$1/log" ||
    die "promtool: $(tail -n 1 "$1/log")"
}

ensure_promtool() {
  local into
  [ -x "$chart_tools/bin/promtool" ] && return
  into=$(mktemp -d)
  unpack_promtool "$into" || build_promtool "$into"
  mkdir -p "$chart_tools/bin"
  mv "$into/promtool" "$chart_tools/bin/promtool"
  rm -rf "$into"
}

ensure_chart_tools() {
  local version
  ensure_helm
  ensure_promtool
  install_go_program "$chart_tools/bin" kubeconform "github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform_version"
  for version in "${kubernetes_schema_versions[@]}"; do schemas_of k8s.io/kubernetes "$version" "$chart_tools/schemas/kubernetes/${version%.*}"; done
  schemas_of sigs.k8s.io/gateway-api "$gateway_api_version" "$chart_tools/schemas/gateway-api"
  schemas_of github.com/prometheus-operator/prometheus-operator "$prometheus_operator_version" "$chart_tools/schemas/prometheus-operator"
}
