# shellcheck shell=bash
# Sourced: Posthorn as pods of the local cluster.

in_system() { kubectl --namespace posthorn-system "$@"; }

load() {
  if has_docker; then kind load docker-image --name posthorn "$1"; else load_into_containerd "$1"; fi
}

# The keys are made once, so that a second deploy can read what the first one has sealed.
deploy_keys() {
  local key
  in_system get secret posthorn >/dev/null 2>&1 ||
    in_system create secret generic posthorn --from-literal=POSTHORN_ENCRYPTION_KEYS="dev:$(openssl rand -base64 32)" --from-literal=POSTHORN_API_KEY="ph_$(openssl rand -hex 32)" >/dev/null
  key=$(in_system get secret posthorn -o jsonpath='{.data.POSTHORN_API_KEY}' | openssl base64 -d -A)
  kubectl apply -f - >/dev/null <<YAML
apiVersion: posthorn.dev/v1alpha1
kind: ApiKey
metadata: {name: admin, namespace: default}
spec: {role: admin, sha256: $(printf %s "$key" | openssl dgst -sha256 -r | cut -d ' ' -f 1)}
YAML
}

deploy() {
  local name deployments=(redis posthorn-controller posthorn-api posthorn-delivery)
  build_images
  load "$posthorn_image"
  load "$redis_image"
  kubectl apply --server-side -f "$root/crds" >/dev/null
  kubectl wait --for=condition=Established --timeout=30s -f "$root/crds" >/dev/null
  kubectl apply -f "$root/config/cluster-dev/namespace.yaml" >/dev/null
  deploy_keys
  kubectl apply -f "$root/config/rbac" -f "$root/config/cluster-dev" >/dev/null
  # A new image under the same name changes no Deployment: the rollout has to be asked for.
  in_system rollout restart "${deployments[@]/#/deployment/}" >/dev/null
  for name in "${deployments[@]}"; do
    in_system rollout status "deployment/$name" --timeout=120s >/dev/null || {
      in_system get pods -o wide >&2
      in_system logs "deployment/$name" --tail=20 >&2 || true
      die "$name does not become ready: see above"
    }
  done
  say 'Posthorn runs in namespace posthorn-system; its API: kubectl -n posthorn-system port-forward service/posthorn-api 8080:80'
  say 'its key: kubectl -n posthorn-system get secret posthorn -o jsonpath={.data.POSTHORN_API_KEY} | base64 -d'
}
