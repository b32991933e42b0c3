# shellcheck shell=bash
# Sourced: Posthorn as pods of the local cluster.

in_system() { kubectl --namespace posthorn-system "$@"; }

load() {
  # shellcheck disable=SC2046 # one word a node
  if has_docker; then kind load docker-image --name posthorn "$1"; else load_into_containerd "$1" $(running_nodes); fi
}

# The controller makes them after Helm has done its part.
workers_are_ready() {
  in_system wait --for=create deliverypool/default --timeout=60s >/dev/null &&
    in_system wait --for=condition=Ready deliverypool/default --timeout=120s >/dev/null
}

deploy() {
  local image role chart
  chart=$(pack_chart "$root/charts/posthorn" "$state")
  build_images
  load "$posthorn_image"
  load "$redis_image"
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Namespace
metadata: {name: posthorn-system, labels: {pod-security.kubernetes.io/enforce: restricted}}
YAML
  # A new image under the same name changes no Deployment: the annotation does.
  image=$(image_id "$posthorn_image")
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
