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
  # Others may read it while it is written.
  cat >"$state/kubeconfig.new" <<YAML
apiVersion: v1
kind: Config
clusters: [{name: posthorn, cluster: {server: "https://127.0.0.1:$1", certificate-authority: $state/pki/ca.crt}}]
users: [{name: admin, user: {token: $2}}]
contexts: [{name: posthorn, context: {cluster: posthorn, user: admin}}]
current-context: posthorn
YAML
  mv "$state/kubeconfig.new" "$state/kubeconfig"
}

start_etcd() {
  # There are no peers: its port may be any.
  start etcd "$from/etcd" --data-dir "$state/etcd-data" --unsafe-no-fsync --listen-peer-urls http://127.0.0.1:0 \
    --listen-client-urls "http://127.0.0.1:$port" --advertise-client-urls "http://127.0.0.1:$port"
}
etcd_is_ready() { curl --fail --silent --max-time 5 "http://127.0.0.1:$port/readyz"; }

start_apiserver() {
  local flags=()
  read -ra flags <<<"${CLUSTER_APISERVER_FLAGS:-}"
  start kube-apiserver "$from/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" --secure-port="$port" \
    --tls-cert-file="$state/pki/server.crt" --tls-private-key-file="$state/pki/server.key" --client-ca-file="$state/pki/ca.crt" \
    --service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$state/pki/sa.key" --service-account-key-file="$state/pki/sa.pub" \
    --token-auth-file="$state/tokens.csv" --authorization-mode=Node,RBAC --kubelet-preferred-address-types=InternalIP \
    --audit-policy-file="$root/hack/lib/audit-policy.yaml" --audit-log-path="$state/audit.log" --audit-log-maxsize=1000 \
    --service-cluster-ip-range="$service_cidr" --allow-privileged=true "${flags[@]}"
  write_kubeconfig "$port" "$token"
}

control_plane() {
  local from token port etcd_port
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
  start_on_free_port etcd 30 start_etcd etcd_is_ready
  etcd_port=$port
  start_on_free_port kube-apiserver 60 start_apiserver kubectl get --raw /readyz --request-timeout=5s

  start kube-controller-manager "$from/kube-controller-manager" --kubeconfig="$state/kubeconfig" --secure-port=0 --leader-elect=false \
    --use-service-account-credentials=true --service-account-private-key-file="$state/pki/sa.key" --root-ca-file="$state/pki/ca.crt" \
    --cluster-signing-cert-file="$state/pki/ca.crt" --cluster-signing-key-file="$state/pki/ca.key" \
    --horizontal-pod-autoscaler-sync-period=5s --horizontal-pod-autoscaler-downscale-stabilization=15s
  await kube-controller-manager 30 kubectl -n default get serviceaccount default --request-timeout=5s
}
