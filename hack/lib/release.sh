# shellcheck shell=bash
# Sourced by hack/release: what it requires, and how it makes each file. `version`, `commit`, `epoch`, `platforms`, `base`, `key`, `work` and `made` are its own.
# shellcheck disable=SC2154

# All that names the version has to name this one.
require_versions() {
  local chart=$root/charts/posthorn/Chart.yaml wrong=() all
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || die "$version is not a version such as 1.2.3 or 1.2.3-rc.1"
  require_version package.json "$(cd "$root" && node -p 'require("./package.json").version')"
  require_version package-lock.json "$(cd "$root" && node -p 'require("./package-lock.json").version')"
  require_version 'version of charts/posthorn/Chart.yaml' "$(sed -n 's/^version: *//p' "$chart")"
  require_version 'appVersion of charts/posthorn/Chart.yaml' "$(sed -n 's/^appVersion: *//p' "$chart")"
  grep -qF "## [$version]" "$root/CHANGELOG.md" || wrong+=('CHANGELOG.md has no such heading')
  [ ${#wrong[@]} -eq 0 ] && return
  printf -v all '%s; ' "${wrong[@]}"
  die "not everything has the version $version: ${all%; }"
}

# require_version WHAT FOUND
require_version() { [ "$2" = "$version" ] || wrong+=("$1 has $2"); }

# Sets `key` to the name of a file.
require_key() {
  [ -n "$key" ] || die 'needs a key to sign with: --key FILE or RELEASE_KEY; --unsigned makes a release without a signature'
  command -v openssl >/dev/null || install_system_package 'to sign' openssl || die 'needs openssl to sign'
  if [[ $key == -----BEGIN* ]]; then
    printf '%s\n' "$key" >"$work/key.pem"
    key=$work/key.pem
  fi
  openssl dgst -sha256 -sign "$key" -out "$work/tried" "$root/package.json" 2>/dev/null || die 'the key cannot sign: it has to be a private ECDSA or RSA key in PEM'
}

require_platforms() {
  local platform problem
  for platform in ${platforms//,/ }; do
    [[ $platform =~ ^linux/(amd64|arm64)$ ]] || die "$platform is not a platform of the image: linux/amd64, linux/arm64"
  done
  ensure_buildah
  if [ "$base" = "$local_base_image" ]; then
    # That of this machine runs the build.
    ensure_local_base_image
    for platform in ${platforms//,/ }; do ensure_local_base_image "${platform#linux/}"; done
    return
  fi
  for platform in ${platforms//,/ }; do
    say "fetching the base image of $platform"
    problem=$(buildah pull -q --platform "$platform" "$base" 2>&1 >/dev/null) ||
      die "the base image of $platform, $base, cannot be fetched: ${problem##*$'\n'}. With --local-base base images are used that are made on this machine"
  done
}

# with_epoch DIRECTORY: all below has this time and no rights that depend on the machine, so that archives of it are always the same.
with_epoch() {
  chmod -R u=rwX,go=rX "$1"
  find "$1" -exec touch --no-dereference --date="@$epoch" {} +
}

# archive DIRECTORY: the same bytes of the same files.
archive() { (cd "$1" && tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --create -- *); }

release_chart() {
  local source=$work/chart packed
  mkdir "$source"
  cp -R "$root/charts/posthorn" "$source"
  with_epoch "$source"
  packed=$(pack_chart "$source/posthorn" "$made")
  "$chart_tools/bin/helm" template posthorn "$packed" --namespace posthorn-system | sed -n 's/^ *image: "\{0,1\}\([^" ]*posthorn[^" ]*\)"\{0,1\}$/\1/p' | sort -u >"$work/images"
  [ "$(sed 's/.*://' "$work/images")" = "$version" ] || die "the chart does not name the image by the version: $(tr '\n' ' ' <"$work/images")"
}

release_schemas() { archive "$root/config/schemas" | gzip -n >"$made/posthorn-$version.schemas.tar.gz"; }

# The stage that builds runs on this machine, once; no package has code of a platform (hack/check-packages.ts), so the other stage copies the same files onto each base image.
release_image() {
  local platform stage files list=localhost/posthorn-release:$$ pull=(--pull)
  [ "$base" != "$local_base_image" ] || pull=(--pull-never)
  say "building the image of $platforms"
  set_npm_secret
  image_step bud --layers "${pull[@]}" --network host "${npm_secret[@]}" --build-arg "BASE_IMAGE=$base" --target build --iidfile "$work/stage" --file "$root/Dockerfile" "$root"
  stage=$(buildah from --pull-never "$(cat "$work/stage")")
  echo "$stage" >"$work/container"
  files=$(buildah mount "$stage")
  { echo 'ARG BASE_IMAGE' && sed -n '/^FROM ${BASE_IMAGE}$/,$p' "$root/Dockerfile"; } >"$work/Dockerfile"
  buildah manifest create "$list" >/dev/null
  echo "$list" >"$work/list"
  for platform in ${platforms//,/ }; do
    image_step bud "${pull[@]}" --platform "$platform" --timestamp "$epoch" --omit-history --identity-label=false --build-arg "BASE_IMAGE=$(base_of "$platform")" \
      --label "org.opencontainers.image.version=$version" --label "org.opencontainers.image.revision=$commit" --label org.opencontainers.image.licenses=Apache-2.0 \
      --build-context "build=$files" --manifest "$list" --iidfile "$work/images-of-list" --file "$work/Dockerfile" "$root"
    cat "$work/images-of-list" >>"$work/images-made" && echo >>"$work/images-made"
  done
  image_step manifest push --all --digestfile "$work/digest" "$list" "oci:$work/image:$version"
  archive "$work/image" >"$made/posthorn-$version.image.tar"
  { cat "$work/digest" && echo; } >"$made/posthorn-$version.image.digest"
}

# base_of PLATFORM
base_of() { if [ "$base" = "$local_base_image" ]; then local_base_image_of "${1#linux/}"; else echo "$base"; fi; }

image_step() {
  buildah "$@" >"$work/image.log" 2>&1 || {
    tail -n 30 "$work/image.log" >&2
    die 'the image could not be built: see above'
  }
}

end_release() {
  trap '' INT TERM
  [ ! -e "$work/container" ] || buildah rm "$(cat "$work/container")" >/dev/null 2>&1 || true
  [ ! -e "$work/list" ] || buildah manifest rm "$(cat "$work/list")" >/dev/null 2>&1 || true
  # Else each release would leave its images.
  [ ! -e "$work/images-made" ] || xargs buildah rmi <"$work/images-made" >/dev/null 2>&1 || true
  rm -rf "$work"
}
