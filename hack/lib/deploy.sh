# shellcheck shell=bash
# Sourced: Posthorn as pods of the local cluster.

# What hack/release has made for the nodes and `deploy` has installed.
release=$cluster_cache/release
version=$(sed -n 's/^version: *//p' "$root/charts/posthorn/Chart.yaml")

in_system() { kubectl --namespace posthorn-system "$@"; }

load() {
  # shellcheck disable=SC2046 # one word a node
  if has_docker; then kind load docker-image --name posthorn "$1"; else load_into_containerd "$1" $(running_nodes); fi
}

names_of_nodes() { if has_docker; then kind get nodes --name posthorn; else running_nodes; fi; }

# in_node NODE ARGUMENT…: ctr on the images of Kubernetes.
in_node() { if has_docker; then docker exec --interactive "$1" ctr --namespace k8s.io "${@:2}"; else in_containerd "$@"; fi; }

# rename IMAGE NAME: an image of the nodes has another name, too.
rename() {
  local node
  for node in $(names_of_nodes); do in_node "$node" images tag --force "$1" "$2" >/dev/null; done
}

# A release needs buildah, which mounts an image as root alone. Nothing is installed beside a Docker engine.
can_release() { ! has_docker || { [ "$(id -u)" = 0 ] && command -v buildah && command -v runc; } >/dev/null; }

# Makes a release for the nodes, verifies it and loads its image. Sets `chart`, and `image` to the values that select its image.
take_release() {
  local options=(--unsigned --allow-dirty --platform "linux/$(own_architecture)") node name
  has_docker || options+=(--local-base)
  rm -rf "$release.new"
  "$root/hack/release" "${options[@]}" "$version" "$release.new"
  (cd "$release.new" && sha256sum --strict --quiet --check SHA256SUMS)
  rm -rf "$release"
  mv "$release.new" "$release"
  chart=$release/posthorn-$version.tgz
  image=$(cat "$release/posthorn-$version.image.digest")
  for node in $(names_of_nodes); do
    # Without its digest as a name an earlier image goes when no container needs it.
    for name in $(in_node "$node" images ls -q | grep "^$posthorn_repository@"); do in_node "$node" images rm "$name" >/dev/null; done
    in_node "$node" images import --base-name "$posthorn_repository" --digests - <"$release/posthorn-$version.image.tar" >/dev/null
  done
}

# For a machine that cannot make a release. Sets the same as take_release.
take_image() {
  chart=$(pack_chart "$root/charts/posthorn" "$state")
  build_image "$posthorn_image" "$root/Dockerfile" "$root"
  image=$(docker image inspect --format '{{.Id}}' "$posthorn_image")
  docker tag "$posthorn_image" "$posthorn_repository:$version"
  load "$posthorn_repository:$version"
  rm -rf "$release"
}

# The controller makes them after Helm has done its part.
workers_are_ready() {
  in_system wait --for=create deliverypool/default --timeout=60s >/dev/null &&
    in_system wait --for=condition=Ready deliverypool/default --timeout=120s >/dev/null
}

deploy() {
  local role chart image
  if can_release; then take_release; else take_image; fi
  # The manifests in config/ name it so.
  rename "$posthorn_repository:$version" "$posthorn_image"
  build_redis_image
  load "$redis_image"
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Namespace
metadata: {name: posthorn-system, labels: {pod-security.kubernetes.io/enforce: restricted}}
YAML
  # A new image under the same name changes no Deployment: the annotation does.
  "$chart_tools/bin/helm" upgrade --install posthorn "$chart" --kubeconfig "$state/kubeconfig" --namespace posthorn-system \
    --values "$root/config/cluster-dev/values.yaml" --set-string "controller.podAnnotations.image=$image,api.podAnnotations.image=$image,ingest.podAnnotations.image=$image,delivery.podAnnotations.image=$image" \
    --wait --timeout 180s >/dev/null && workers_are_ready || {
    in_system get pods -o wide >&2
    in_system get deliverypools -o wide >&2 || true
    for role in controller api ingest delivery-default; do in_system logs "deployment/posthorn-$role" --tail=20 >&2 || true; done
    die 'the chart does not become ready: see above'
  }
  say 'Posthorn runs in namespace posthorn-system; its API: kubectl -n posthorn-system port-forward service/posthorn-api 8080:80'
  say 'events are taken by: kubectl -n posthorn-system port-forward service/posthorn-ingest 8081:80'
  say 'its key: kubectl -n posthorn-system get secret posthorn-api-key -o jsonpath={.data.api-key} | base64 -d'
}
