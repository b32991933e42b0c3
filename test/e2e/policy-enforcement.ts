import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import { kubectl } from './kubectl.ts';

const namespace = 'posthorn-system';
/** Mark of the packets that a rule lets through; a bit that kube-proxy does not use. */
const mark = '0x200000/0x200000';

// Strict: what is not understood here must not pass for enforced.
const selectorSchema = z.strictObject({
  matchLabels: z.record(z.string(), z.string()).default({}),
  matchExpressions: z.array(z.strictObject({ key: z.string(), operator: z.literal('In'), values: z.array(z.string()) })).default([]),
});
const peersSchema = z
  .array(
    z.strictObject({
      podSelector: selectorSchema.optional(),
      ipBlock: z.strictObject({ cidr: z.string(), except: z.array(z.string()).default([]) }).optional(),
    }),
  )
  .optional();
const portsSchema = z.array(z.strictObject({ port: z.union([z.int(), z.string()]), protocol: z.enum(['TCP', 'UDP']) })).optional();
const policiesSchema = z.object({
  items: z.array(
    z.object({
      spec: z.strictObject({
        podSelector: selectorSchema,
        policyTypes: z.array(z.enum(['Ingress', 'Egress'])),
        ingress: z.array(z.strictObject({ from: peersSchema, ports: portsSchema })).default([]),
        egress: z.array(z.strictObject({ to: peersSchema, ports: portsSchema })).default([]),
      }),
    }),
  ),
});
const podsSchema = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()).default({}) }),
      spec: z.object({
        containers: z.array(z.object({ ports: z.array(z.object({ name: z.string().optional(), containerPort: z.int() })).default([]) })),
      }),
      status: z.object({ podIP: z.string().optional() }),
    }),
  ),
});
type Selector = z.output<typeof selectorSchema>;
type Pod = z.output<typeof podsSchema>['items'][number];
interface Rule {
  peers: z.output<typeof peersSchema>;
  ports: z.output<typeof portsSchema>;
}

/**
 * Puts the NetworkPolicies of the installation in force for its current pods, by rules of iptables: the network of `hack/cluster` supports none. New
 * connections follow them, existing ones stay open. Returns a function that ends it. In kind its own network has them in force.
 */
export async function enforcePolicies(): Promise<() => void> {
  if (process.env['POSTHORN_E2E_AUDIT_LOG'] === undefined) return () => {};
  const get = async (kind: string): Promise<unknown> => JSON.parse(await kubectl(['get', kind, '-n', namespace, '-o', 'json']));
  const policies = policiesSchema.parse(await get('networkpolicies')).items;
  const pods = podsSchema.parse(await get('pods')).items.filter(({ status }) => status.podIP !== undefined);
  const chains: string[] = [];
  const rules: string[] = ['-A PH-POLICY -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN'];
  const chain = (): string => {
    const name = `PH-POLICY-${chains.length}`;
    chains.push(name);
    return name;
  };
  const confine = (pod: Pod, type: 'Ingress' | 'Egress'): void => {
    const selected = policies.filter(({ spec }) => spec.policyTypes.includes(type) && isSelected(pod, spec.podSelector));
    if (selected.length === 0) return;
    const of: Rule[] = selected.flatMap(({ spec }) =>
      type === 'Ingress'
        ? spec.ingress.map(({ from, ports }) => ({ peers: from, ports }))
        : spec.egress.map(({ to, ports }) => ({ peers: to, ports })),
    );
    const own = chain();
    const peer = type === 'Ingress' ? '-s' : '-d';
    rules.push(
      `-A PH-POLICY ${type === 'Ingress' ? '-d' : '-s'} ${pod.status.podIP} -j ${own}`,
      `-A ${own} -j MARK --set-xmark 0x0/0x200000`,
    );
    for (const { peers, ports } of of) {
      for (const port of portMatches(ports, type === 'Ingress' ? [pod] : pods)) {
        for (const { podSelector, ipBlock } of peers ?? [{}]) {
          if (podSelector !== undefined)
            for (const { status } of pods.filter((each) => isSelected(each, podSelector)))
              rules.push(`-A ${own} ${peer} ${status.podIP} ${port} -j MARK --set-xmark ${mark}`);
          else if (ipBlock === undefined) rules.push(`-A ${own} ${port} -j MARK --set-xmark ${mark}`);
          else if (!ipBlock.cidr.includes(':')) {
            const block = chain();
            rules.push(`-A ${own} ${peer} ${ipBlock.cidr} ${port} -j ${block}`);
            for (const except of ipBlock.except) rules.push(`-A ${block} ${peer} ${except} -j RETURN`);
            rules.push(`-A ${block} -j MARK --set-xmark ${mark}`);
          }
        }
      }
    }
    for (const reject of ['-p tcp -j REJECT --reject-with tcp-reset', '-j REJECT'])
      rules.push(`-A ${own} -m mark ! --mark ${mark} ${reject}`);
  };
  for (const type of ['Egress', 'Ingress'] as const) for (const pod of pods) confine(pod, type);
  const all = ['PH-POLICY', ...chains];
  const iptables = (...args: string[]): unknown => execFileSync('iptables', ['-w', ...args], { stdio: 'pipe' });
  const restore = promisify(execFile)('iptables-restore', ['-w', '--noflush']);
  restore.child.stdin?.end(['*filter', ...all.map((name) => `:${name} - [0:0]`), ...rules, 'COMMIT', ''].join('\n'));
  await restore;
  const hooks = [['FORWARD'], ['INPUT', '-i', 'phcni0']];
  for (const hook of hooks) iptables('-I', ...hook, '-j', 'PH-POLICY');
  return () => {
    for (const hook of hooks) iptables('-D', ...hook, '-j', 'PH-POLICY');
    for (const name of all) iptables('-F', name);
    for (const name of all) iptables('-X', name);
  };
}

function isSelected({ metadata: { labels } }: Pod, { matchLabels, matchExpressions }: Selector): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, values }) => values.includes(labels[key] ?? ''))
  );
}

/** Matches of iptables; names of ports are resolved among the containers of `pods`. */
function portMatches(ports: Rule['ports'], pods: readonly Pod[]): string[] {
  if (ports === undefined) return [''];
  const named = pods.flatMap(({ spec }) => spec.containers.flatMap((container) => container.ports));
  return ports.flatMap(({ port, protocol }) => {
    const numbers = typeof port === 'number' ? [port] : named.flatMap(({ name, containerPort }) => (name === port ? [containerPort] : []));
    return [...new Set(numbers)].map((number) => `-p ${protocol.toLowerCase()} --dport ${number}`);
  });
}
