import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';

/** What a kubelet leaves, and a foreign chain with a name that begins alike; then what `hack/cluster down` runs. */
const script = `
set -euo pipefail
root=$PWD state=$(mktemp -d) bin=$state
trap 'rm -rf "$state"' EXIT
say() { echo "$@"; }
alive() { false; }
stop() { :; }
. hack/lib/node.sh
ln -s "$(command -v true)" "$bin/kube-proxy"
touch "$state/kubelet.yaml"
echo 0 >"$ip_forward"
cat "$ip_forward" >"$state/ip_forward"
echo 1 >"$ip_forward"
for family in iptables ip6tables; do
  for table in mangle nat filter; do $family -t $table -N KUBE-KUBELET-CANARY; done
  $family -t mangle -N KUBE-IPTABLES-HINT
  $family -N KUBE-FIREWALL
  $family -N KUBE-FIREWALL-OF-ANOTHER
  $family -A KUBE-FIREWALL -m comment --comment "block incoming localnet connections" -j DROP
  $family -I INPUT -j KUBE-FIREWALL
  $family -I OUTPUT -m comment --comment 'it is "quoted"' -j KUBE-FIREWALL
  $family -A INPUT -j KUBE-FIREWALL-OF-ANOTHER
done
clean_nodes
for family in iptables ip6tables; do $family-save | grep KUBE; done
echo "forwards: $(cat "$ip_forward")"
`;

// It needs a network of its own, which takes root.
const canIsolate = spawnSync('unshare', ['--net', 'iptables', '-L']).status === 0;

(canIsolate ? test : test.skip)('a node that is cleaned leaves no chain of its kubelet, and forwards packets as before', async () => {
  const { stdout } = await promisify(execFile)('unshare', ['--net', 'bash', '-c', script]);
  const others = [':KUBE-FIREWALL-OF-ANOTHER - [0:0]', '-A INPUT -j KUBE-FIREWALL-OF-ANOTHER'];
  expect(stdout.trim().split('\n')).toEqual([...others, ...others, 'forwards: 0']);
});
