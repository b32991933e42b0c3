import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '@jest/globals';
import { z } from 'zod';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { startTlsReceiver, type TlsReceiver, type TlsRequest } from '../support/tls-receiver.ts';
import { addressOfThisMachine } from './cluster-world.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { Shop } from './manifests.ts';
import { type SenderPod, type Sent, startSenderPod } from './sender-pod.ts';

const event = z.object({ number: z.int() });
const condition = z.object({ type: z.string(), status: z.string(), observedGeneration: z.int().optional() });
const judged = z.object({ metadata: z.object({ generation: z.int() }), status: z.object({ conditions: z.array(condition) }) });

/** Prints the addresses of a host. Several servers of cluster DNS may answer, each with its cached ones. */
const lookUp = `
  import { lookup } from 'node:dns/promises';
  const found = await Promise.all(Array.from({ length: 20 }, () => lookup(process.argv[1])));
  process.stdout.write([...new Set(found.map(({ address }) => address))].join());`;

/** Where an installation is. */
export interface Installed {
  /** As `spec.installation` of Organizations names it. */
  installation: string;
  namespace: string;
  /** With which the names of its Services begin. */
  fullname: string;
}

const first: Installed = { installation: 'default', namespace: 'posthorn-system', fullname: 'posthorn' };

export interface Load {
  perSecond: number;
  /** Where events are sent to first. Default: the API. */
  entrance?: 'api' | 'ingest';
  /** Signs the certificate of the receiver, and workers trust it. Default: one that the Destination trusts. */
  authority?: CertificateAuthority;
  /** Settings of the Destination beside its URL. */
  http?: object;
  /** Secrets that `http` refers to. */
  secrets?: Record<string, string>;
  /** What the receiver expects of each request. */
  expected?: (request: TlsRequest) => boolean;
}

/** A pod of the cluster sends all the time; a receiver on this machine keeps account of what arrives. */
export class SteadyLoad {
  /** How long the receiver takes for an answer. */
  answerMs = 100;
  /** Requests that the receiver has not answered yet. */
  underWay = 0;
  /** The most that there have been. */
  maxUnderWay = 0;
  /** Numbers of events whose request ended without an answer, for who sent it has gone. */
  readonly cutOff: number[] = [];
  /** Numbers of events that arrived once more after the first time, in this order. */
  readonly repeated: number[] = [];
  /** Requests that were not as expected. */
  readonly unexpected: TlsRequest[] = [];
  newestRequest: TlsRequest | null = null;
  readonly #installed: Installed;
  readonly #arrived = new Set<number>();
  #newest = 0;
  readonly shop = new Shop(`load-${randomBytes(3).toString('hex')}`);
  #authority: CertificateAuthority | null = null;
  #receiver: TlsReceiver | null = null;
  #sender: SenderPod | null = null;

  constructor(installed = first) {
    this.#installed = installed;
  }

  async start({ perSecond, entrance = 'api', authority, http, secrets = {}, expected = () => true }: Load): Promise<void> {
    const address = addressOfThisMachine();
    const isOwn = authority === undefined;
    const signer = authority ?? createCertificateAuthority();
    if (isOwn) this.#authority = signer;
    this.#receiver = await startTlsReceiver({
      tls: signer.issue([address]),
      address,
      respond: (request) => {
        this.newestRequest = request;
        if (!expected(request)) this.unexpected.push(request);
        return this.#receive(numberOf(request.body));
      },
      cutOff: ({ body }) => this.cutOff.push(numberOf(body)),
    });
    const namespace = this.shop.name;
    await kubectlApply([this.shop.organization([`${address}/32`], this.#installed.installation)]);
    await kubectl(['wait', '--for=condition=Ready', `organization/${namespace}`, '--timeout=120s']);
    const url = this.#receiver.url();
    await kubectlApply([
      ...Object.entries(secrets).map(([name, value]) => this.#secret(name, value)),
      { ...this.#object('Source'), spec: { provider: 'generic', dedup: { strategy: 'idempotency_key' } } },
      { ...this.#object('Destination'), spec: { type: 'http', http: { url, ...(isOwn && { tls: { caBundle: signer.text } }), ...http } } },
      { ...this.#object('Route'), spec: { sourceRef: { name: 'load' }, destinationRefs: [{ name: 'load' }] } },
    ]);
    for (const kind of ['source', 'destination', 'route'])
      await kubectl(['-n', namespace, 'wait', '--for=condition=Ready', `${kind}/load`, '--timeout=120s']);
    await this.sendTo(entrance);
    this.#sender = await startSenderPod({
      namespace,
      image: await imageOf('deployment/posthorn-api'),
      url: `http://entrance.${namespace}.svc/ingest/${namespace}/load`,
      perSecond,
    });
    await this.goesOn();
  }

  /** Makes its connections lead to the Service of a role from now on, as with an entrance of one's own. Existing ones stay. */
  async sendTo(role: 'api' | 'ingest'): Promise<void> {
    const { namespace, fullname } = this.#installed;
    const spec = { type: 'ExternalName', externalName: `${fullname}-${role}.${namespace}.svc.cluster.local` };
    await kubectlApply([{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'entrance', namespace: this.shop.name }, spec }]);
  }

  /** Waits until new connections of the sender lead there: cluster DNS returns cached answers for some seconds. */
  async leadsTo(role: 'api' | 'ingest'): Promise<void> {
    const { namespace, fullname } = this.#installed;
    const wanted = await kubectl(['-n', namespace, 'get', `service/${fullname}-${role}`, '-o', 'jsonpath={.spec.clusterIP}']);
    const inSender = ['-n', this.namespace, 'exec', 'pod/sender', '--', 'node', '--input-type=module', '--eval'];
    await eventually(async () => expect(await kubectl([...inSender, lookUp, `entrance.${this.namespace}.svc`])).toBe(wanted), 120_000);
  }

  /** Namespace of the organization. */
  get namespace(): string {
    return this.shop.name;
  }

  /** Changes the Secret of `secrets`. */
  async putSecret(name: string, value: string): Promise<void> {
    await kubectlApply([this.#secret(name, value)]);
  }

  /** Lets the receiver show another certificate on new connections. */
  showCertificate(authority: CertificateAuthority): void {
    this.#receiver?.showCertificate(authority.issue([addressOfThisMachine()]));
  }

  /** Where the receiver listens, as `address:port`. */
  get receiver(): string {
    return `${addressOfThisMachine()}:${this.#receiver?.port}`;
  }

  /** Names the pool that is to serve the organization of the load; null: none. */
  async moveTo(pool: string | null): Promise<void> {
    const organization = `organization/${this.shop.name}`;
    await kubectl(['patch', organization, '--type=merge', '-p', JSON.stringify({ spec: { deliveryPool: pool } })]);
    // `kubectl wait` would be content with the condition of the generation before.
    await eventually('the organization to be ready with the pool', 120_000, async () => {
      const { metadata, status } = judged.parse(JSON.parse(await kubectl(['get', organization, '-o', 'json'])));
      const ready = status.conditions.find(({ type }) => type === 'Ready');
      return ready?.status === 'True' && ready.observedGeneration === metadata.generation;
    });
  }

  /** Waits until more has arrived. */
  async goesOn(events = 20): Promise<void> {
    const before = this.#arrived.size;
    await eventually('events to arrive', 120_000, () => this.#arrived.size >= before + events);
  }

  /** The highest number that has arrived. */
  newest(): number {
    return this.#newest;
  }

  /** Waits until each event that has been accepted so far has arrived; throws with the numbers of those that have not. */
  async losesNothing(deadlineMs = 120_000): Promise<void> {
    const accepted = (await this.#sender?.sent())?.accepted ?? [];
    await this.#waitFor(accepted, deadlineMs);
  }

  /** Ends the sender and waits until all has arrived; returns what it has sent. */
  async end(deadlineMs = 120_000): Promise<Sent> {
    const sent = await this.#sender?.stop();
    if (sent === undefined) throw new Error('nothing has been sent');
    await this.#waitFor(sent.accepted, deadlineMs);
    return sent;
  }

  async remove(): Promise<void> {
    await this.#receiver?.stop();
    this.#authority?.remove();
    await kubectl(['delete', 'organization', this.shop.name, '--ignore-not-found', '--wait=true', '--timeout=120s']);
    await kubectl(['delete', 'namespace', this.shop.name, '--ignore-not-found', '--wait=true', '--timeout=120s']);
  }

  async #waitFor(numbers: readonly number[], deadlineMs: number): Promise<void> {
    const missing = (): number[] => numbers.filter((number) => !this.#arrived.has(number));
    try {
      await eventually('what was accepted to arrive', deadlineMs, () => missing().length === 0);
    } catch {
      throw new Error(`lost, of ${numbers.length} accepted: ${missing().join(', ')}`);
    }
  }

  async #receive(number: number): Promise<number> {
    if (this.#arrived.has(number)) this.repeated.push(number);
    this.#arrived.add(number);
    this.#newest = Math.max(this.#newest, number);
    this.underWay++;
    this.maxUnderWay = Math.max(this.maxUnderWay, this.underWay);
    await sleep(this.answerMs);
    this.underWay--;
    return 200;
  }

  #secret(name: string, value: string): object {
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: this.shop.name }, stringData: { value } };
  }

  #object(kind: string) {
    return { apiVersion: 'posthorn.dev/v1alpha1', kind, metadata: { name: 'load', namespace: this.shop.name } };
  }
}

function numberOf(body: Buffer): number {
  return event.parse(JSON.parse(body.toString('utf8'))).number;
}

/** The image of a Deployment of the installation. */
export function imageOf(deployment: string): Promise<string> {
  return kubectl(['-n', 'posthorn-system', 'get', deployment, '-o', 'jsonpath={.spec.template.spec.containers[0].image}']);
}
