import { readFileSync } from 'node:fs';
import { kubectl } from './kubectl.ts';
import { nodePod } from './node-pod.ts';

const name = 'sender';
const line = /^(\d+) (accepted|refused|unanswered)\b(.*)$/;

export interface Sent {
  /** Numbers of the events that were answered with 2xx. */
  accepted: number[];
  /** Responses other than 2xx, as `number status code time`. */
  refused: string[];
  /** Requests without an answer, whatever became of the event; each was sent again. */
  unanswered: number;
}

/** A pod that sends to a URL in the cluster: no replaced pod takes its connection along, as it would that of a port-forward. */
export interface SenderPod {
  /** What it has sent so far. */
  sent(): Promise<Sent>;
  /** Ends it when each of its events has been accepted; returns all. */
  stop(): Promise<Sent>;
}

/** The pod goes with its namespace. */
export async function startSenderPod(options: { namespace: string; image: string; url: string; perSecond: number }): Promise<SenderPod> {
  const inNamespace = ['-n', options.namespace];
  const program = readFileSync(new URL('./sender-in-pod.ts', import.meta.url), 'utf8');
  const pod = nodePod({
    name,
    namespace: options.namespace,
    image: options.image,
    command: ['node', '--input-type=module-typescript', '--eval', program],
    env: [
      { name: 'SENDER_URL', value: options.url },
      { name: 'SENDER_PER_SECOND', value: String(options.perSecond) },
    ],
  });
  await kubectl(['create', '-f', '-'], JSON.stringify(pod));
  await kubectl([...inNamespace, 'wait', '--for=condition=Ready', `pod/${name}`, '--timeout=180s']);
  const sent = async (): Promise<Sent> => read(await kubectl([...inNamespace, 'logs', name]));
  return {
    sent,
    stop: async () => {
      await kubectl([...inNamespace, 'exec', name, '--', 'node', '--eval', "process.kill(1, 'SIGTERM')"]);
      await kubectl([...inNamespace, 'wait', '--for=jsonpath={.status.phase}=Succeeded', `pod/${name}`, '--timeout=180s']);
      return sent();
    },
  };
}

function read(log: string): Sent {
  const sent: Sent = { accepted: [], refused: [], unanswered: 0 };
  for (const text of log.split('\n')) {
    const [, number, what, rest] = line.exec(text) ?? [];
    if (what === 'accepted') sent.accepted.push(Number(number));
    if (what === 'refused') sent.refused.push(`${number}${rest}`);
    if (what === 'unanswered') sent.unanswered++;
  }
  return sent;
}
