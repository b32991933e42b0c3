# shellcheck shell=bash
# Sourced: one Kubernetes node out of processes of this machine: containerd, kubelet, kube-proxy, scheduler and CoreDNS. Needs root.

pod_cidr=10.244.0.0/24
dns_address=10.96.0.10
containerd_socket() { echo "$state/containerd.sock"; }
in_containerd() { ctr --address "$(containerd_socket)" --namespace k8s.io "$@"; }

ensure_node_parts() {
  local command packages=() source=$cluster_cache/src/pause
  PATH=$PATH:/usr/sbin:/sbin
  for command in containerd runc buildah iptables conntrack; do command -v $command >/dev/null || packages+=("$command"); done
  [ -d /usr/lib/cni ] || packages+=(containernetworking-plugins)
  if [ ${#packages[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || die "needs ${packages[*]}: install them, or start a Docker engine, then try again"
    install_system_package 'to run containers' "${packages[@]}" || die "could not install ${packages[*]}"
  fi
  if [ ! -x "$bin/coredns" ]; then
    needs_go CoreDNS
    say "building CoreDNS $coredns_version"
    CGO_ENABLED=0 GOBIN=$bin go install -ldflags '-s -w' "github.com/coredns/coredns@$coredns_version" 2>"$bin/coredns.log" || die "CoreDNS: $(tail -n 1 "$bin/coredns.log")"
  fi
  if [ ! -x "$bin/pause" ]; then
    needs_go 'the pause container'
    mkdir -p "$source"
    printf 'package main\n\nimport (\n\t"os"\n\t"os/signal"\n\t"syscall"\n)\n\nfunc main() {\n\tc := make(chan os.Signal, 1)\n\tsignal.Notify(c, syscall.SIGINT, syscall.SIGTERM)\n\t<-c\n}\n' >"$source/pause.go"
    (cd "$source" && CGO_ENABLED=0 go build -ldflags '-s -w' -o "$bin/pause" pause.go)
  fi
}

write_node_configuration() {
  mkdir -p "$state/cni" "$state/kubelet"
  cat >"$state/containerd.toml" <<TOML
version = 2
root = "$cluster_cache/containerd"
state = "$state/containerd"
[grpc]
  address = "$(containerd_socket)"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$state/cni"
TOML
  cat >"$state/cni/10-posthorn.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "posthorn", "plugins": [
  {"type": "bridge", "bridge": "phcni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$state/ipam", "ranges": [[{"subnet": "$pod_cidr"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  cat >"$state/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failSwapOn: false
failCgroupV1: false
containerRuntimeEndpoint: unix://$(containerd_socket)
clusterDNS: [$dns_address]
clusterDomain: cluster.local
evictionHard: {nodefs.available: "1%", imagefs.available: "1%", memory.available: "100Mi"}
YAML
}

# image_of_binary NAME: localhost/NAME:1, with nothing in it but $bin/NAME.
image_of_binary() {
  local container
  in_containerd images ls -q | grep -qx "localhost/$1:1" && return
  container=$(buildah from scratch)
  buildah copy -q "$container" "$bin/$1" "/$1" >/dev/null
  buildah config --entrypoint "[\"/$1\"]" "$container"
  buildah commit -q "$container" "localhost/$1:1" >/dev/null
  buildah rm "$container" >/dev/null
  load_into_containerd "localhost/$1:1"
}

load_into_containerd() {
  local archive
  archive=$(mktemp -u)
  buildah push -q "$1" "docker-archive:$archive:$1"
  in_containerd images import "$archive" >/dev/null
  rm -f "$archive"
}

start_node() {
  local address
  if alive kubelet; then return; fi
  ensure_kubernetes "${kubernetes_binaries[@]}"
  ensure_node_parts
  write_node_configuration
  address=$(hostname -I | awk '{print $1}')
  start containerd containerd --config "$state/containerd.toml"
  await containerd 30 in_containerd version
  image_of_binary pause
  image_of_binary coredns
  echo 1 >/proc/sys/net/ipv4/ip_forward
  start kube-scheduler "$bin/kube-scheduler" --kubeconfig="$state/kubeconfig" --leader-elect=false --secure-port="$(free_port)"
  start kubelet "$bin/kubelet" --kubeconfig="$state/kubeconfig" --config="$state/kubelet.yaml" --root-dir="$state/kubelet" --hostname-override=node --node-ip="$address"
  start kube-proxy "$bin/kube-proxy" --kubeconfig="$state/kubeconfig" --cluster-cidr="$pod_cidr" --hostname-override=node --proxy-mode=iptables
  kubectl apply -f "$root/hack/lib/coredns.yaml" >/dev/null
  await kubelet 60 kubectl get node node
  kubectl wait --for=condition=Ready node/node --timeout=60s >/dev/null
  kubectl -n kube-system rollout status deployment/coredns --timeout=90s >/dev/null
}

# What containers, kubelet and kube-proxy leave behind on the machine.
clean_node() {
  local task mount
  if [ -S "$(containerd_socket)" ]; then
    for task in $(in_containerd tasks ls -q 2>/dev/null); do in_containerd tasks kill -s KILL "$task" >/dev/null 2>&1 || true; done
    sleep 1
  fi
  stop containerd
  if [ -e "$state/kubelet.yaml" ]; then
    "$bin/kube-proxy" --cleanup >/dev/null 2>&1 || true
    ip link delete phcni0 2>/dev/null || true
  fi
  awk -v below="$state/" 'index($2, below) == 1 {print $2}' /proc/mounts 2>/dev/null | sort -r | while read -r mount; do
    umount "$mount" 2>/dev/null || umount -l "$mount" 2>/dev/null || true
  done
}
