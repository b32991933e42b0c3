# shellcheck shell=bash
# Sourced: one Kubernetes node out of processes of this machine: containerd, kubelet, kube-proxy, scheduler and CoreDNS. Needs root.

# Of all nodes; each has a part of it.
pod_cidr=10.244.0.0/16
dns_address=10.96.0.10
ip_forward=/proc/sys/net/ipv4/ip_forward
# The second comes with add_node.
nodes=(node node-2)
declare -A bridges=([node]=phcni0 [node-2]=phcni1) pods=([node]=10.244.0.0/24 [node-2]=10.244.1.0/24)

# suffix NODE: distinguishes its processes and files from those of the first node.
suffix() { echo "${1#node}"; }
containerd_socket() { echo "$state/containerd$(suffix "$1").sock"; }
# in_containerd NODE COMMAND…
in_containerd() { ctr --address "$(containerd_socket "$1")" --namespace k8s.io "${@:2}"; }
running_nodes() {
  local node
  for node in "${nodes[@]}"; do if alive "containerd$(suffix "$node")"; then echo "$node"; fi; done
}

ensure_node_parts() {
  local command packages=() source=$cluster_cache/src/pause new
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
    new=$(new_in "$bin")
    CGO_ENABLED=0 GOBIN=$new go install -ldflags '-s -w' "github.com/coredns/coredns@$coredns_version" 2>"$bin/coredns.log" || die "CoreDNS: $(tail -n 1 "$bin/coredns.log")"
    arrive "$new"
  fi
  if [ ! -x "$bin/pause" ]; then
    needs_go 'the pause container'
    mkdir -p "$source"
    printf 'package main\n\nimport (\n\t"os"\n\t"os/signal"\n\t"syscall"\n)\n\nfunc main() {\n\tc := make(chan os.Signal, 1)\n\tsignal.Notify(c, syscall.SIGINT, syscall.SIGTERM)\n\t<-c\n}\n' >"$source/pause.go"
    new=$(new_in "$bin")
    (cd "$source" && CGO_ENABLED=0 go build -ldflags '-s -w' -o "$new/pause" pause.go)
    arrive "$new"
  fi
}

# write_node_configuration NODE
write_node_configuration() {
  local node=$1 suffix
  suffix=$(suffix "$node")
  mkdir -p "$state/cni$suffix" "$state/kubelet$suffix"
  cat >"$state/containerd$suffix.toml" <<TOML
version = 2
root = "$cluster_cache/containerd$suffix"
state = "$state/containerd$suffix"
[grpc]
  address = "$(containerd_socket "$node")"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$state/cni$suffix"
TOML
  cat >"$state/cni$suffix/10-posthorn.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "posthorn", "plugins": [
  {"type": "bridge", "bridge": "${bridges[$node]}", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$state/ipam$suffix", "ranges": [[{"subnet": "${pods[$node]}"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  cat >"$state/kubelet$suffix.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failSwapOn: false
failCgroupV1: false
containerRuntimeEndpoint: unix://$(containerd_socket "$node")
clusterDNS: [$dns_address]
clusterDomain: cluster.local
evictionHard: {nodefs.available: "1%", imagefs.available: "1%", memory.available: "100Mi"}
YAML
  # What two kubelets on one machine must not share: each takes the pods of the other for left-overs.
  [ -z "$suffix" ] || cat >>"$state/kubelet$suffix.yaml" <<YAML
healthzPort: 0
cgroupRoot: /posthorn-$node
podLogsDir: $state/pod-logs$suffix
YAML
}

# image_of_binary NODE NAME: localhost/NAME:1, with nothing in it but $bin/NAME.
image_of_binary() {
  local container image=localhost/$2:1
  in_containerd "$1" images ls -q | grep -qx "$image" && return
  container=$(buildah from scratch)
  buildah copy -q "$container" "$bin/$2" "/$2" >/dev/null
  buildah config --entrypoint "[\"/$2\"]" "$container"
  buildah commit -q "$container" "$image" >/dev/null
  buildah rm "$container" >/dev/null
  load_into_containerd "$image" "$1"
}

# load_into_containerd IMAGE NODE…
load_into_containerd() {
  local archive node
  archive=$(mktemp -u)
  buildah push -q "$1" "docker-archive:$archive:$1"
  for node in "${@:2}"; do in_containerd "$node" images import "$archive" >/dev/null; done
  rm -f "$archive"
}

# start_kubelet NODE: with its containerd.
start_kubelet() {
  local node=$1 suffix address port
  suffix=$(suffix "$node")
  address=$(hostname -I | awk '{print $1}')
  write_node_configuration "$node"
  start "containerd$suffix" containerd --config "$state/containerd$suffix.toml"
  await "containerd$suffix" 30 in_containerd "$node" version
  image_of_binary "$node" pause
  if [ -z "$suffix" ]; then start_kubelet_process; else start_on_free_port "kubelet$suffix" 60 start_kubelet_on_port kubelet_is_up; fi
}

start_kubelet_process() {
  start "kubelet$suffix" "$bin/kubelet" --kubeconfig="$state/kubeconfig" --config="$state/kubelet$suffix.yaml" --root-dir="$state/kubelet$suffix" \
    --hostname-override="$node" --node-ip="$address"
}

start_kubelet_on_port() {
  sed -i '/^port: /d' "$state/kubelet$suffix.yaml"
  echo "port: $port" >>"$state/kubelet$suffix.yaml"
  start_kubelet_process
}
# The node may be known from before.
kubelet_is_up() { curl --fail --silent --insecure --max-time 5 "https://127.0.0.1:$port/healthz" && kubectl get node "$node" --request-timeout=5s; }

start_node() {
  if alive kubelet; then return; fi
  ensure_kubernetes "${kubernetes_binaries[@]}"
  ensure_node_parts
  # For clean_nodes; what a run before this one has found stays.
  [ -e "$state/ip_forward" ] || cat "$ip_forward" >"$state/ip_forward"
  echo 1 >"$ip_forward"
  start kube-scheduler "$bin/kube-scheduler" --kubeconfig="$state/kubeconfig" --leader-elect=false --secure-port=0
  start_kubelet node
  image_of_binary node coredns
  start kube-proxy "$bin/kube-proxy" --kubeconfig="$state/kubeconfig" --cluster-cidr="$pod_cidr" --hostname-override=node --proxy-mode=iptables
  kubectl apply -f "$root/hack/lib/coredns.yaml" >/dev/null
  await kubelet 60 kubectl get node node --request-timeout=5s
  kubectl wait --for=condition=Ready node/node --timeout=60s >/dev/null
  kubectl -n kube-system rollout status deployment/coredns --timeout=90s >/dev/null
}

# A second node beside the first, with the images that this one has; after lose_node the same once more, as when its power comes back.
add_node() {
  local image archive
  alive kubelet || die 'there is no first node: start it with up'
  if alive kubelet-2; then return; fi
  ensure_node_parts
  clean_node node-2
  make_cgroup /posthorn-node-2
  start_kubelet node-2
  archive=$(mktemp -u)
  for image in $(in_containerd node images ls -q | grep '^localhost/'); do
    in_containerd node images export "$archive" "$image"
    in_containerd node-2 images import "$archive" >/dev/null
  done
  rm -f "$archive"
  kubectl wait --for=condition=Ready node/node-2 --timeout=60s >/dev/null
}

# As by a power cut: from one moment on nothing comes from the second node any more, no refusal and no end of a connection either. Kubelet
# and containerd are killed first: neither reports the end of the rest.
lose_node() {
  alive kubelet-2 || die 'there is no second node: start it with add-node'
  { echo '*raw' && network_cuts | sed 's/^/-I /' && echo COMMIT; } | iptables-restore --noflush
  kill -KILL "$(cat "$state/kubelet-2.pid")" "$(cat "$state/containerd-2.pid")"
  # shellcheck disable=SC2046 # one word a number
  kill -KILL $(pgrep -f -- "-address $(containerd_socket node-2)") $(in_cgroup /posthorn-node-2) 2>/dev/null || true
}

# The rules that cut off the second node, before the connection tracking of the others: with a reset from there it would let the
# next packet of a sender choose another pod. What is sent to the pods is tracked and then lost, as on a cable.
network_cuts() {
  echo "PREROUTING -i ${bridges[node-2]} -j DROP"
  echo "PREROUTING -p tcp --syn --dport $(sed -n 's/^port: //p' "$state/kubelet-2.yaml") -j DROP"
}

cgroup_roots() { printf '%s\n' /sys/fs/cgroup /sys/fs/cgroup/*/ | while read -r folder; do if [ -e "$folder/cgroup.procs" ]; then echo "${folder%/}"; fi; done; }

# make_cgroup PATH: with every controller that there is.
make_cgroup() {
  local root controller
  for root in $(cgroup_roots); do
    mkdir -p "$root$1"
    for controller in $(cat "$root/cgroup.controllers" 2>/dev/null); do echo "+$controller" >"$root/cgroup.subtree_control" || true; done
  done
}

# in_cgroup PATH: the processes of it and of those below it.
in_cgroup() {
  local root
  for root in $(cgroup_roots); do find "$root$1" -name cgroup.procs -exec cat {} + 2>/dev/null || true; done | sort -u
}

# clean_node NODE: what its containers and its kubelet leave behind on the machine.
clean_node() {
  local node=$1 suffix task namespace rule cgroup
  suffix=$(suffix "$node")
  if ! alive "containerd$suffix" && [ -d "$state/containerd$suffix" ]; then
    # It was killed: another one finds the containers that were not.
    start "containerd$suffix" containerd --config "$state/containerd$suffix.toml"
    (await "containerd$suffix" 30 in_containerd "$node" version) || true
  fi
  if alive "containerd$suffix"; then
    for task in $(in_containerd "$node" tasks ls -q 2>/dev/null); do in_containerd "$node" tasks kill -s KILL "$task" >/dev/null 2>&1 || true; done
    sleep 1
  fi
  stop "containerd$suffix"
  [ -e "$state/kubelet$suffix.yaml" ] || return 0
  for namespace in $(ip -o link show master "${bridges[$node]}" 2>/dev/null | sed -n 's/.*link-netns \(\S*\).*/\1/p'); do ip netns delete "$namespace" 2>/dev/null || true; done
  ip link delete "${bridges[$node]}" 2>/dev/null || true
  forget_masquerades "${pods[$node]}"
  unmount "$state/containerd$suffix" "$state/kubelet$suffix"
  if [ -n "$suffix" ]; then
    network_cuts | while read -r rule; do
      # shellcheck disable=SC2086 # options and their values
      while iptables -t raw -D $rule 2>/dev/null; do :; done
    done
    for cgroup in $(cgroup_roots); do find "$cgroup/posthorn-$node" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
    rm -rf "$state/kubelet$suffix" "$state/containerd$suffix" "$state/ipam$suffix" "$state/pod-logs$suffix"
  fi
}

# forget_masquerades NETWORK: the rules for its pods that CNI had no time to take back.
forget_masquerades() {
  local rules
  rules=$(iptables-save -t nat 2>/dev/null | grep -F 'name: \"posthorn\"' | grep -e "^-A POSTROUTING -s ${1%.*}[.]" || true)
  [ -n "$rules" ] || return 0
  {
    echo '*nat'
    sed 's/^-A/-D/' <<<"$rules"
    sed -n 's/.* -j \(CNI-.*\)/-F \1\n-X \1/p' <<<"$rules"
    echo COMMIT
  } | iptables-restore --noflush
}

# The chains of a kubelet that kube-proxy --cleanup ignores, with the rules that lead to them.
forget_kubelet_chains() {
  local family table rules chains='KUBE-(FIREWALL|KUBELET-CANARY|IPTABLES-HINT)'
  for family in iptables ip6tables; do
    for table in mangle nat filter; do
      rules=$("$family-save" -t "$table" 2>/dev/null | grep -E "^:$chains |^-A .* -j $chains( |\$)" || true)
      [ -n "$rules" ] || continue
      {
        echo "*$table"
        sed -n 's/^-A/-D/p' <<<"$rules"
        sed -n 's/^:\([^ ]*\) .*/-F \1\n-X \1/p' <<<"$rules"
        echo COMMIT
      } | "$family-restore" --noflush || say "rules of the kubelet stay in the table $table of $family"
    done
  done
}

# unmount FOLDER…: them and everything below.
unmount() {
  local mount folder
  for folder in "$@"; do
    awk -v folder="$folder" '$2 == folder || index($2, folder "/") == 1 {print $2}' /proc/mounts 2>/dev/null | sort -r | while read -r mount; do
      umount "$mount" 2>/dev/null || umount -l "$mount" 2>/dev/null || true
    done
  done
}

clean_nodes() {
  local node
  for node in "${nodes[@]}"; do clean_node "$node"; done
  if [ -e "$state/kubelet.yaml" ]; then
    "$bin/kube-proxy" --cleanup >/dev/null 2>&1 || true
    forget_kubelet_chains
  fi
  if [ -e "$state/ip_forward" ]; then
    cat "$state/ip_forward" >"$ip_forward"
    rm "$state/ip_forward"
  fi
  unmount "$state"
}
