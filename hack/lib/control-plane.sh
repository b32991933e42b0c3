# shellcheck shell=bash
# Sourced: etcd, kube-apiserver and kube-controller-manager as processes of this machine, on free ports.

service_cidr=10.96.0.0/16

control_plane_certificates() {
  mkdir -p "$state/pki"
  (
    cd "$state/pki"
    exec 2>openssl.log
    openssl genrsa -out sa.key 2048
    openssl rsa -in sa.key -pubout -out sa.pub
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 3650 -subj /CN=posthorn-cluster
    printf '[server]\nsubjectAltName=IP:127.0.0.1,IP:%s.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc\n' "${service_cidr%.*}" >server.cnf
    openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=kube-apiserver
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 3650 -extfile server.cnf -extensions server
  ) || die "certificates: $(tail -n 1 "$state/pki/openssl.log")"
}

write_kubeconfig() { # PORT TOKEN
  cat >"$state/kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: posthorn, cluster: {server: "https://127.0.0.1:$1", certificate-authority: $state/pki/ca.crt}}]
users: [{name: admin, user: {token: $2}}]
contexts: [{name: posthorn, context: {cluster: posthorn, user: admin}}]
current-context: posthorn
YAML
}

control_plane() {
  local from token client_port peer_port api_port
  if alive kube-apiserver; then return; fi
  discard
  from=$(assets)
  ensure_node
  mkdir -p "$state"
  chmod 700 "$state"
  # First of all: by it a directory is known to be a cluster's.
  token=$(openssl rand -hex 16)
  echo "$token,admin,admin,\"system:masters\"" >"$state/tokens.csv"
  control_plane_certificates
  client_port=$(free_port) peer_port=$(free_port) api_port=$(free_port)

  start etcd "$from/etcd" --data-dir "$state/etcd-data" --unsafe-no-fsync --listen-peer-urls "http://127.0.0.1:$peer_port" \
    --listen-client-urls "http://127.0.0.1:$client_port" --advertise-client-urls "http://127.0.0.1:$client_port"
  await etcd 30 curl --fail --silent "http://127.0.0.1:$client_port/readyz"

  local flags=()
  read -ra flags <<<"${CLUSTER_APISERVER_FLAGS:-}"
  start kube-apiserver "$from/kube-apiserver" --etcd-servers="http://127.0.0.1:$client_port" --secure-port="$api_port" \
    --tls-cert-file="$state/pki/server.crt" --tls-private-key-file="$state/pki/server.key" --client-ca-file="$state/pki/ca.crt" \
    --service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$state/pki/sa.key" --service-account-key-file="$state/pki/sa.pub" \
    --token-auth-file="$state/tokens.csv" --authorization-mode=Node,RBAC --kubelet-preferred-address-types=InternalIP \
    --audit-policy-file="$root/hack/lib/audit-policy.yaml" --audit-log-path="$state/audit.log" --audit-log-maxsize=1000 \
    --service-cluster-ip-range="$service_cidr" --allow-privileged=true "${flags[@]}"
  write_kubeconfig "$api_port" "$token"
  await kube-apiserver 60 kubectl get --raw /readyz

  start kube-controller-manager "$from/kube-controller-manager" --kubeconfig="$state/kubeconfig" --secure-port="$(free_port)" --leader-elect=false \
    --use-service-account-credentials=true --service-account-private-key-file="$state/pki/sa.key" --root-ca-file="$state/pki/ca.crt" \
    --cluster-signing-cert-file="$state/pki/ca.crt" --cluster-signing-key-file="$state/pki/ca.key" \
    --horizontal-pod-autoscaler-sync-period=5s --horizontal-pod-autoscaler-downscale-stabilization=15s
  await kube-controller-manager 30 kubectl -n default get serviceaccount default
}
