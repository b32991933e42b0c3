// What the loss of a node costs, in the cluster of hack/cluster without Docker (root on Linux):
//   node hack/chaos/node.ts
// Starts it with Posthorn and a second node, spreads two pods of each role over both, and sends 200 events/s through the Service of
// ingest, each over a connection of its own. Then the second node, where the controller leads, is gone at once as by a power cut. Ends with 1 when
// something accepted does not arrive, more arrives twice than was under way there, others are late to resume, or a connection waits in vain that
// neither the rules of kube-proxy nor connection tracking leads to the lost pod. Takes ten minutes, most of which Kubernetes waits before
// it replaces pods.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { addressOfThisMachine } from '../../test/e2e/cluster-world.ts';
import { kubectl, kubectlApply } from '../../test/e2e/kubectl.ts';
import { eventually } from '../../test/support/eventually.ts';
import { deployedChart, helm } from '../../test/support/helm.ts';
import { percentile, report } from '../bench/lib/report.ts';
import { changedWebhookIds, repeatedArrivals, startSink } from '../bench/lib/sink.ts';
import { SteadySender } from './steady-sender.ts';
import { verdict } from './verdict.ts';

const perSecond = 200;
/** Long enough for many to be under way when the node is lost, and not so long that one worker may not have as many as come in. */
const answerMs = 200;
const takeoverDeadlineMs = 60_000;
const inSystem = ['-n', 'posthorn-system'];
const workers = 'deployment/posthorn-delivery-default';
const roles = {
  controller: 'app.kubernetes.io/component=controller',
  api: 'app.kubernetes.io/component=api',
  ingest: 'app.kubernetes.io/component=ingest',
  delivery: 'posthorn.dev/delivery-pool=default',
};
/** The effect of `ingest.tolerations` on the five minutes that Kubernetes waits before it replaces pods of a lost node. */
const tolerationSeconds = 30;
/** The sender gives up after 5 s; its connection does not try on for longer than this. */
const lastTryMs = 12_000;
const lostNodePods = /^(::ffff:)?10\.244\.1\./;

const { rows, mustBe, exitCode } = verdict();
const hackCluster = new URL('../cluster', import.meta.url).pathname;
const cluster = (...args: string[]): void => void execFileSync(hackCluster, args, { stdio: 'inherit' });
const seconds = (ms: number | undefined): string => (ms === undefined ? 'never' : `${(ms / 1000).toFixed(1)} s`);
const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;

interface Request {
  from: string;
  endedMs: number;
}
const requests: Request[] = [];
const sink = await startSink(({ socket }, response) => {
  const request = { from: socket.remoteAddress ?? '', endedMs: Number.POSITIVE_INFINITY };
  requests.push(request);
  setTimeout(() => {
    request.endedMs = performance.now();
    response.end();
  }, answerMs);
}, addressOfThisMachine());

/** `node pod` of each pod of a role that is ready. */
async function readyPods(role: keyof typeof roles): Promise<{ node: string; name: string }[]> {
  const line =
    '{range .items[*]}{.spec.nodeName} {.metadata.name} {.metadata.deletionTimestamp} {.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}';
  const pods = await kubectl(['get', 'pods', ...inSystem, '-l', roles[role], '-o', `jsonpath=${line}`]);
  return pods.split('\n').flatMap((pod) => {
    const [, node, name] = /^(\S+) (\S+) {2}True$/.exec(pod) ?? [];
    return node === undefined || name === undefined ? [] : [{ node, name }];
  });
}

async function start(): Promise<void> {
  cluster('up');
  // Redis comes before the second node does.
  cluster('deploy');
  cluster('add-node');
  const variables = execFileSync(
    'bash',
    ['-c', 'eval "$("$0" env)" && printf "%s\\n" "$KUBECONFIG" "$PATH" "$POSTHORN_E2E_RELEASE"', hackCluster],
    {
      encoding: 'utf8',
    },
  );
  const [kubeconfig = '', path = '', release = ''] = variables.split('\n');
  Object.assign(process.env, { KUBECONFIG: kubeconfig, PATH: `${path}:/usr/sbin:/sbin`, POSTHORN_E2E_RELEASE: release });
  const toleration = { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds };
  const set = [
    'api.replicas=2',
    'ingest.replicas=2',
    'delivery.replicas=2',
    ...Object.keys(roles).map((role) => `${role}.podAnnotations.nodes=two`),
  ];
  const changes = ['--reset-then-reuse-values', '--set', set.join(','), '--set-json', `ingest.tolerations=${JSON.stringify([toleration])}`];
  await helm('upgrade', 'posthorn', deployedChart(), ...inSystem, ...changes, '--wait', '--timeout', '120s');
  await eventually('the controller to tell of two workers', 60_000, async () =>
    (await kubectl(['get', workers, ...inSystem, '-o', 'jsonpath={.spec.replicas}{.spec.template.metadata.annotations.nodes}'])) === '2two'
      ? true
      : undefined,
  );
  await kubectl(['rollout', 'status', workers, ...inSystem, '--timeout=120s']);
  for (const role of Object.keys(roles) as (keyof typeof roles)[]) {
    await eventually(
      `the pods of ${role} of before to end`,
      60_000,
      async () => (await kubectl(['get', 'pods', ...inSystem, '-l', roles[role], '-o', 'name'])).trim().split('\n').length === 2,
    );
    const nodes = (await readyPods(role)).map(({ node }) => node).toSorted();
    rows.push([`pods of ${role}`, nodes.join(', ')]);
    mustBe(`a pod of ${role} on each node`, nodes.join() === 'node,node-2');
  }
}

const leader = (): Promise<string> => kubectl(['get', 'lease/posthorn-controller', ...inSystem, '-o', 'jsonpath={.spec.holderIdentity}']);

/** Sees to it that the controller of the second node leads. */
async function leadOnSecondNode(): Promise<void> {
  const pods = await readyPods('controller');
  const [first, second] = ['node', 'node-2'].map((node) => pods.find((pod) => pod.node === node)?.name);
  if (first === undefined || second === undefined) throw new Error('a node has no controller');
  if (!(await leader()).includes(second)) await kubectl(['delete', 'pod', first, ...inSystem, '--wait=true']);
  await eventually('the second node to lead', 60_000, async () => (await leader()).includes(second));
  await eventually('two controllers', 60_000, async () => (await readyPods('controller')).length === 2);
}

const namespace = 'node-loss';
const named = (kind: string, name = 'load') => ({ apiVersion: 'posthorn.dev/v1alpha1', kind, metadata: { name, namespace } });

async function configure(): Promise<string> {
  const allowedCidrs = [`${addressOfThisMachine()}/32`];
  await kubectlApply([
    { ...named('Organization', namespace), metadata: { name: namespace }, spec: { namespace, egress: { allowedCidrs } } },
  ]);
  await kubectl(['wait', '--for=condition=Ready', `organization/${namespace}`, '--timeout=30s']);
  await kubectlApply([
    { ...named('Source'), spec: { provider: 'generic' } },
    { ...named('Destination'), spec: { type: 'http', http: { url: sink.origin } } },
    { ...named('Route'), spec: { sourceRef: { name: 'load' }, destinationRefs: [{ name: 'load' }] } },
  ]);
  for (const kind of ['source', 'destination', 'route'])
    await kubectl(['-n', namespace, 'wait', '--for=condition=Ready', `${kind}/load`, '--timeout=30s']);
  const address = await kubectl(['get', 'service/posthorn-ingest', ...inSystem, '-o', 'jsonpath={.spec.clusterIP}']);
  return `http://${address}/ingest/${namespace}/load`;
}

/** How long after `since` the lease of the leader changes hands. */
async function takeover(since: number): Promise<number> {
  const before = await leader();
  const watch = spawn('kubectl', [
    'get',
    'lease/posthorn-controller',
    ...inSystem,
    '--watch',
    '-o',
    'jsonpath={.spec.holderIdentity}{"\\n"}',
  ]);
  const timer = setTimeout(() => watch.kill(), takeoverDeadlineMs);
  try {
    for await (const holder of createInterface(watch.stdout)) if (holder !== '' && holder !== before) return performance.now() - since;
  } finally {
    clearTimeout(timer);
    watch.kill();
  }
  throw new Error('no other controller leads');
}

const run = async (command: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)(command, args, { maxBuffer: 100_000_000 })).stdout;

/** Whether nothing comes back from there, not even a refusal. */
const isSilent = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 5000 });
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('timeout', () => end(true));
    for (const event of ['connect', 'error']) socket.once(event, () => end(false));
  });

const ports = (lines: string, pattern: RegExp): Set<string> => new Set([...lines.matchAll(pattern)].map(([, port = '']) => port));
/** From which ports of this machine a connection to the address waits for its first answer. */
const waitingPorts = async (address: string): Promise<Set<string>> =>
  ports(await run('ss', '-tnH', 'state', 'syn-sent', 'dst', address), /^\d+ +\d+ +\S+:(\d+) /gm);
const trackedTo = (pod: string): string[] => ['-p', 'tcp', '--state', 'SYN_SENT', '--reply-src', pod];
/** From which ports a connection is led to the pod, regardless of the current rules of kube-proxy. */
const trackedPorts = async (pod: string): Promise<Set<string>> =>
  ports(await run('conntrack', '-L', ...trackedTo(pod)), /^tcp.*? sport=(\d+)/gm);

/** From how many ports connections wait for more than a second, and how many of these are not led to the pod. */
async function watchWaiting(address: string, pod: string): Promise<{ waiting: number; unexplained: number }> {
  const [waiting, unexplained] = [new Set<string>(), new Set<string>()];
  for (let second = 0; second < 15; second++) {
    const before = await waitingPorts(address);
    await sleep(1000);
    const now = await waitingPorts(address);
    const tracked = await trackedPorts(pod);
    for (const port of before) {
      if (!now.has(port)) continue;
      waiting.add(port);
      if (!tracked.has(port)) unexplained.add(port);
    }
  }
  return { waiting: waiting.size, unexplained: unexplained.size };
}

let sender: SteadySender | null = null;
try {
  await start();
  const url = await configure();
  await leadOnSecondNode();
  sender = new SteadySender(url, perSecond, { headers: { connection: 'close' }, maxUnderWay: 5000 });
  sender.start();
  await sleep(15_000);
  const isUsed = (isLost: boolean): boolean => requests.some(({ from }) => lostNodePods.test(from) === isLost);
  mustBe('workers of both nodes deliver', isUsed(true) && isUsed(false));
  mustBe(`nothing is refused before (${sender.failedAtMs.length})`, sender.failedAtMs.length === 0);
  const ingestPodOfNode2 = ['get', 'pods', ...inSystem, '-l', roles.ingest, '--field-selector', 'spec.nodeName=node-2'];
  const lostPod = await kubectl([...ingestPodOfNode2, '-o', 'jsonpath={.items[0].status.podIP}']);
  const service = new URL(url).hostname;

  const lost = performance.now();
  await promisify(execFile)(hackCluster, ['lose-node']);
  const since = (): number => performance.now() - lost;
  const replaced = async (role: keyof typeof roles): Promise<number> =>
    eventually(`two pods of ${role}`, 480_000, async () => {
      await sleep(1000);
      return (await readyPods(role)).filter(({ node }) => node === 'node').length === 2 ? since() : undefined;
    });
  const notReady = kubectl(['wait', '--for=condition=Ready=Unknown', 'node/node-2', '--timeout=120s']).then(since);
  const changed = async (): Promise<number> => {
    await kubectlApply([{ ...named('Source', 'after'), spec: { provider: 'generic' } }]);
    await kubectl(['-n', namespace, 'wait', '--for=condition=Ready', 'source/after', '--timeout=60s']);
    return since();
  };
  const withoutRule = eventually('kube-proxy to send nothing to the lost pod', 120_000, async () => {
    await sleep(250);
    return (await run('iptables-save', '-t', 'nat')).includes(`-> ${lostPod}:`) ? undefined : since();
  });
  const ingestReplaced = replaced('ingest');
  const othersReplaced = Promise.all((['delivery', 'controller', 'api'] as const).map(replaced));
  const [silent, takeoverMs, changedMs, notReadyMs, withoutRuleMs] = await Promise.all([
    isSilent(lostPod, 8080),
    takeover(lost),
    changed(),
    notReady,
    withoutRule,
  ]);
  mustBe('the lost pod does not even refuse a connection', silent);
  rows.push(['another controller leads after', seconds(takeoverMs)]);
  rows.push(['a change of a resource is in force after', seconds(changedMs)]);
  mustBe('another controller leads within 20 s', takeoverMs <= 20_000);
  await sleep(lastTryMs);
  const { waiting, unexplained } = await watchWaiting(service, lostPod);
  const untilForgottenMs = since();
  const forgotten = (await trackedPorts(lostPod)).size;
  await run('conntrack', '-D', ...trackedTo(lostPod)).catch(() => undefined);
  const forgottenMs = since();
  await sleep(15_000);
  await sender.stop();
  const { accepted, refused, unanswered, failedAtMs } = sender;
  const missing = (): number[] => [...accepted].filter((number) => !sink.arrivals.has(number));
  await eventually('everything accepted to arrive', 60_000, () => missing().length === 0).catch(() => undefined);
  await sleep(20_000);

  const duplicated = repeatedArrivals([sink]);
  const underWay = requests.filter(({ from, endedMs }) => lostNodePods.test(from) && endedMs > lost).length;
  const changedIds = changedWebhookIds([sink]);
  const arrivals = sink.times.map((at, index) => ({ afterMs: at - lost, sentMs: at - (sink.latenciesMs[index] ?? 0) - lost }));
  const heldMs = Math.max(...arrivals.filter(({ sentMs }) => sentMs < 0).map(({ afterMs }) => afterMs));
  const late = arrivals.filter(({ sentMs }) => sentMs > 0).map(({ afterMs, sentMs }) => afterMs - sentMs);
  const shareFailed = (fromMs: number, toMs: number): number =>
    failedAtMs.filter((at) => at - lost >= fromMs && at - lost < toMs).length / (((toMs - fromMs) / 1000) * perSecond);
  const failedShare = shareFailed(0, withoutRuleMs);
  const failedLater = failedAtMs.filter((at) => at - lost >= forgottenMs).length;
  rows.push(['accepted / refused / unanswered', `${accepted.size} / ${refused} / ${unanswered}`]);
  rows.push(['lost', String(missing().length)]);
  rows.push(['arrived twice, of those under way at the lost worker', `${duplicated}, ${underWay}`]);
  rows.push(['events under more than one webhook-id', String(changedIds)]);
  rows.push(['all that was sent before has arrived after', seconds(heldMs)]);
  rows.push([
    'latency of what was sent after: p50 / p99 / max',
    [0.5, 0.99, 1].map((share) => seconds(percentile(late, share))).join(' / '),
  ]);
  rows.push(['Kubernetes takes the node for lost after', seconds(notReadyMs)]);
  rows.push(['kube-proxy sends nothing there any more after', seconds(withoutRuleMs)]);
  rows.push(['share of requests without an answer until then', percent(failedShare)]);
  rows.push([
    `and in the ${seconds(untilForgottenMs - withoutRuleMs)} after it, while ports are used again that connection tracking leads to the lost pod`,
    percent(shareFailed(withoutRuleMs, untilForgottenMs)),
  ]);
  rows.push(['ports that wait longer than a second in the last 15 s of these, of them not led there', `${waiting}, ${unexplained}`]);
  rows.push([`requests without an answer once its ${forgotten} entries of connection tracking are deleted`, String(failedLater)]);
  mustBe('nothing is lost', missing().length === 0);
  mustBe('every event keeps its webhook-id', changedIds === 0);
  mustBe('only what was under way arrives twice', duplicated <= underWay);
  mustBe('what the lost worker held is delivered within 17 s', heldMs <= 17_000);
  mustBe('about half of the connections wait for the lost pod until kube-proxy does without', failedShare > 0.35 && failedShare < 0.65);
  mustBe('kube-proxy does without the lost pod within 5 s of NotReady', withoutRuleMs <= notReadyMs + 5000);
  mustBe('connections that wait later are led to the lost pod by connection tracking', unexplained === 0);
  mustBe('no connection waits once these entries are deleted', failedLater === 0);
  const [{ name: worker = '' } = {}] = (await readyPods('delivery')).filter(({ node }) => node === 'node');
  const check = await kubectl(['exec', worker, ...inSystem, '--', 'node', '/app/dist/cmd/posthorn.js', 'check']).catch(String);
  mustBe('posthorn check has no findings', !check.startsWith('Error'));
  rows.push(['posthorn check', check.trim().split('\n').at(-1) ?? '']);
  rows.push([`the ingest pod, which tolerates ${tolerationSeconds} s, is replaced after`, seconds(await ingestReplaced)]);
  rows.push(['worker, controller and api, which tolerate 300 s, are replaced after', (await othersReplaced).map(seconds).join(', ')]);
} finally {
  await sender?.stop();
  sink.close();
  cluster('down');
}
report(exitCode() !== 0 ? null : 'node', `A node of two is lost at ${perSecond}/s`, rows);
process.exitCode = exitCode();
