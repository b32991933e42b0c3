# shellcheck shell=bash
# Sourced: the Kubernetes binaries in $bin, as released where they can be downloaded, else built from their Go modules.

kubernetes_version=v1.36.3
staging_version=v0.36.3
etcd_version=v3.6.8
coredns_version=v1.13.1

PATH=$PATH:/usr/local/go/bin
bin=$cluster_cache/bin
control_plane_binaries=(kube-apiserver kube-controller-manager kubectl)
kubernetes_binaries=("${control_plane_binaries[@]}" kube-scheduler kubelet kube-proxy)

# missing NAME…: those that are not in $bin.
missing() {
  local name
  for name in "$@"; do [ -x "$bin/$name" ] || echo "$name"; done
}

needs_go() { command -v go >/dev/null || die "needs Go 1.26 or newer to build $1 (its release could not be downloaded): install Go, then try again"; }

release_platform() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) echo linux/amd64 ;;
    Linux-aarch64) echo linux/arm64 ;;
    *) return 1 ;;
  esac
}

download() { curl --fail --silent --location --connect-timeout 4 --max-time 600 --output "$2" "$1"; }

# fetch_kubernetes NAME DIRECTORY
fetch_kubernetes() {
  local from
  from=https://dl.k8s.io/release/$kubernetes_version/bin/$(release_platform) &&
    download "$from/$1.sha256" "$2/sha256" &&
    say "downloading $1 $kubernetes_version" &&
    download "$from/$1" "$2/$1" &&
    echo "$(cat "$2/sha256")  $2/$1" | sha256sum --check --quiet
}

# download_kubernetes NAME…: false where the release server cannot be reached.
download_kubernetes() {
  local name new
  for name in "$@"; do
    new=$(new_in "$bin")
    if ! fetch_kubernetes "$name" "$new"; then
      rm -r "$new"
      return 1
    fi
    rm "$new/sha256"
    chmod +x "$new/$name"
    arrive "$new"
  done
}

# One module that requires Kubernetes; the replacements of its staging modules by their published versions come from its go.mod.
build_kubernetes() {
  local module=$cluster_cache/src/kubernetes name new
  needs_go "$*"
  new=$(new_in "$bin")
  say "building $* $kubernetes_version (about ten minutes on two cores, then cached)"
  mkdir -p "$module"
  (
    cd "$module" || exit
    printf 'module tools\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes %s\n' "$kubernetes_version" >go.mod
    go mod download "k8s.io/kubernetes@$kubernetes_version"
    sed -nE "s#^\s*(\S+) => \./staging.*#replace \1 => \1 $staging_version#p" "$(go env GOMODCACHE)/k8s.io/kubernetes@$kubernetes_version/go.mod" >>go.mod
    {
      printf '//go:build tools\n\npackage tools\n\n'
      for name in "${kubernetes_binaries[@]}"; do echo "import _ \"k8s.io/kubernetes/cmd/$name\""; done
    } >tools.go
    GOFLAGS=-mod=mod go mod tidy >tidy.log 2>&1 || die "go mod tidy: $(tail -n 1 tidy.log)"
    GOFLAGS=-mod=mod go build -o "$new/" -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$kubernetes_version \
      -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${kubernetes_version:3:2}" \
      "${@/#/k8s.io/kubernetes/cmd/}"
  )
  arrive "$new"
}

build_etcd() {
  local module=$cluster_cache/src/etcd new
  needs_go etcd
  new=$(new_in "$bin")
  say "building etcd $etcd_version"
  mkdir -p "$module"
  (
    cd "$module" || exit
    printf 'module tools\n\ngo 1.26.0\n\nrequire go.etcd.io/etcd/server/v3 %s\n' "$etcd_version" >go.mod
    printf 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\nfunc main() { etcdmain.Main(os.Args) }\n' >main.go
    GOFLAGS=-mod=mod go mod tidy >tidy.log 2>&1 || die "go mod tidy: $(tail -n 1 tidy.log)"
    GOFLAGS=-mod=mod go build -ldflags '-s -w' -o "$new/etcd" .
  )
  arrive "$new"
}

download_etcd() {
  local platform archive new
  platform=$(release_platform | tr / -) || return 1
  archive=etcd-$etcd_version-$platform
  new=$(new_in "$bin")
  if ! download "https://github.com/etcd-io/etcd/releases/download/$etcd_version/$archive.tar.gz" "$new/etcd.tar.gz" ||
    ! tar -xzf "$new/etcd.tar.gz" -C "$new" --strip-components=1 "$archive/etcd"; then
    rm -r "$new"
    return 1
  fi
  rm "$new/etcd.tar.gz"
  say "downloaded etcd $etcd_version"
  arrive "$new"
}

ensure_kubernetes() {
  local needed
  mkdir -p "$bin"
  mapfile -t needed < <(missing "$@")
  [ ${#needed[@]} -eq 0 ] || download_kubernetes "${needed[@]}" && return
  mapfile -t needed < <(missing "$@")
  build_kubernetes "${needed[@]}"
}

ensure_etcd() {
  mkdir -p "$bin"
  [ -x "$bin/etcd" ] || download_etcd || build_etcd
}

# The directory with etcd, kube-apiserver, kube-controller-manager and kubectl.
assets() {
  local given=${KUBEBUILDER_ASSETS:-} bin=$bin
  if [ -n "$given" ]; then
    [ -z "$(bin=$given missing etcd "${control_plane_binaries[@]}")" ] && echo "$given" && return
    say "KUBEBUILDER_ASSETS lacks $(bin=$given missing etcd "${control_plane_binaries[@]}" | xargs): using $bin"
  fi
  ensure_kubernetes "${control_plane_binaries[@]}"
  ensure_etcd
  echo "$bin"
}
