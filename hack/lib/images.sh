# shellcheck shell=bash
# Sourced: container images, by the Docker engine where one answers, else by buildah.

# The base image by its digest, as the Dockerfile names it; without access to an image registry, one that is made on this machine.
pinned_base_image=$(sed -n 's/^ARG BASE_IMAGE=//p' "$root/Dockerfile")
local_base_image=localhost/posthorn-base:node24
posthorn_repository=localhost/posthorn
posthorn_image=$posthorn_repository:dev
redis_image=localhost/posthorn-redis:dev

has_docker() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

ensure_buildah() {
  local name missing=()
  # The package runc of the system and the one that comes with a Docker engine exclude each other.
  for name in buildah runc; do command -v "$name" >/dev/null || missing+=("$name"); done
  [ ${#missing[@]} -eq 0 ] || install_system_package 'to build images' "${missing[@]}" ||
    die 'needs a Docker engine or buildah with runc: install one of them, then try again'
}

debian_mirror() {
  awk '$1 == "URIs:" {print $2; exit} $1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; exit}}' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true
}

base_image() { if has_docker; then echo "$pinned_base_image"; else echo "$local_base_image"; fi; }

ensure_base_image() {
  if has_docker; then
    docker image inspect "$(base_image)" >/dev/null 2>&1 || docker pull -q "$(base_image)" >/dev/null
  else
    ensure_local_base_image
  fi
}

own_architecture() { case $(uname -m) in x86_64) echo amd64 ;; *) echo arm64 ;; esac; }

# local_base_image_of ARCHITECTURE
local_base_image_of() { if [ "$1" = "$(own_architecture)" ]; then echo "$local_base_image"; else echo "$local_base_image-$1"; fi; }

# ensure_local_base_image [ARCHITECTURE]: the base image of our Dockerfile, made on this machine without a registry: Debian bookworm by debootstrap
# with the Node of the npm registry, and with the certificate authorities that this machine trusts.
ensure_local_base_image() {
  local architecture=${1:-$(own_architecture)} image files container
  image=$(local_base_image_of "$architecture")
  ensure_buildah
  buildah inspect --type image "$image" >/dev/null 2>&1 && return
  files=$cluster_cache/base
  [ "$architecture" = "$(own_architecture)" ] || files+=-$architecture
  [ -x "$files/usr/local/bin/node" ] || make_base_files "$architecture" "$image" "$files"
  container=$(buildah from scratch)
  buildah add -q "$container" "$files" / >/dev/null
  buildah config --os linux --arch "$architecture" --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt --cmd node "$container"
  buildah commit -q "$container" "$image" >/dev/null
  buildah rm "$container" >/dev/null
}

# make_base_files ARCHITECTURE IMAGE DIRECTORY
make_base_files() {
  local architecture=$1 files=$3 mirror other=()
  [ "$(id -u)" = 0 ] || die 'making the base image needs root, or a Docker engine'
  command -v debootstrap >/dev/null || install_system_package 'to make the base image' debootstrap || die 'needs debootstrap or a Docker engine'
  [ "$architecture" = "$(own_architecture)" ] || other=(--foreign)
  mirror=$(debian_mirror)
  say "making $2 by debootstrap"
  rm -rf "$files"
  mkdir -p "$cluster_cache"
  debootstrap "${other[@]}" --arch "$architecture" --variant=minbase --include=ca-certificates,libstdc++6 bookworm "$files" "${mirror:-http://deb.debian.org/debian}" >"$cluster_cache/debootstrap.log" 2>&1 ||
    die "debootstrap: $(tail -n 1 "$cluster_cache/debootstrap.log")"
  [ ${#other[@]} -eq 0 ] || unpack_packages "$files"
  cp /etc/ssl/certs/ca-certificates.crt "$files/etc/ssl/certs/ca-certificates.crt"
  groupadd --prefix "$files" --gid 1000 node
  useradd --prefix "$files" --create-home --uid 1000 --gid 1000 node
  node_into "$files" "$architecture"
}

# unpack_packages DIRECTORY: what debootstrap has fetched for another architecture. Its programs do not run on this machine, so no package is configured; neither
# Node nor our program needs one that is.
unpack_packages() {
  local package name
  for package in "$1"/var/cache/apt/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar --extract --keep-directory-symlink --directory "$1"; done
  rm -rf "$1/debootstrap" "$1"/var/cache/apt/archives/*.deb
  for name in passwd group; do cp "$1/usr/share/base-passwd/$name.master" "$1/etc/$name"; done
  # In a container debootstrap makes a link to that of this machine.
  [ ! -L "$1/proc" ] || rm "$1/proc"
  mkdir -p "$1/proc" "$1/etc/ssl/certs" "$1/usr/local/bin"
}

# node_into DIRECTORY ARCHITECTURE: Node 24 and npm as the official image has them, under /usr/local. Without --force npm refuses what is for another architecture.
node_into() {
  local cpu=${2/amd64/x64} packages name modules=$1/usr/local/lib/node_modules
  packages=$cluster_cache/node24-$cpu
  ensure_node
  mkdir -p "$packages" "$modules"
  npm install --prefix "$packages" --ignore-scripts --no-audit --no-fund --loglevel error --force "node-linux-$cpu@24" npm@11 >/dev/null ||
    die 'could not fetch Node 24 from the npm registry'
  cp -r "$packages/node_modules/npm" "$modules/npm"
  for name in npm npx; do ln -sf "../lib/node_modules/npm/bin/$name-cli.js" "$1/usr/local/bin/$name"; done
  # Last: with it the files are complete.
  cp "$packages/node_modules/node-linux-$cpu/bin/node" "$1/usr/local/bin/node"
}

# Sets `npm_secret` to the options that give a build this machine's npm configuration. The configuration never goes into a layer.
set_npm_secret() {
  npm_secret=()
  [ ! -e "$HOME/.npmrc" ] || npm_secret=(--secret "id=npmrc,src=$HOME/.npmrc")
}

# build_image IMAGE DOCKERFILE CONTEXT
build_image() {
  local builder
  ensure_base_image
  say "building $1"
  mkdir -p "$cluster_cache"
  if has_docker; then builder=(docker build --progress plain); else builder=(buildah bud --layers --pull-never --network host); fi
  set_npm_secret
  "${builder[@]}" "${npm_secret[@]}" --build-arg "BASE_IMAGE=$(base_image)" --tag "$1" --file "$2" "$3" >"$cluster_cache/image.log" 2>&1 || {
    tail -n 30 "$cluster_cache/image.log" >&2
    die "$1 could not be built: see above"
  }
}

build_redis_image() { build_image "$redis_image" "$root/config/cluster-dev/redis.Dockerfile" "$root/config/cluster-dev"; }

build_images() {
  build_image "$posthorn_image" "$root/Dockerfile" "$root"
  build_redis_image
}
