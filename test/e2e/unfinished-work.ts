import { randomBytes } from 'node:crypto';
import { expect } from '@jest/globals';
import { z } from 'zod';
import type { CertificateAuthority } from '../support/certificate-authority.ts';
import { eventually } from '../support/eventually.ts';
import { portForward } from '../support/port-forward.ts';
import { startTlsReceiver, type TlsReceiver, type TlsRequest } from '../support/tls-receiver.ts';
import { verifies } from '../support/webhook-verification.ts';
import { addressOfThisMachine } from './cluster-world.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import { Shop } from './manifests.ts';
import { ingest, RestClient } from './rest.ts';

const events = 10;
const event = z.object({ number: z.int() });
const later = { maxRetries: 5, initialDelay: 45_000, maxDelay: 45_000, backoffMultiplier: 1 };
const soon = { maxRetries: 20, initialDelay: 200, maxDelay: 200, backoffMultiplier: 1 };

/** What came for one event at one path. */
interface Arrival {
  answers: number[];
  webhookIds: Set<unknown>;
}

/**
 * An organization with events that cannot be delivered yet: retries are due after 45 s, a route is paused, the circuit of another is open, and the
 * endpoint of a customer was disabled while it had its first attempt. All of it is made through the API, by a key that is declared.
 */
export class UnfinishedWork {
  readonly #shop = new Shop(`kept-${randomBytes(3).toString('hex')}`);
  /** Paths of what was made. */
  readonly #made = { source: '', later: '', paused: '', circuit: '', application: '', endpoint: '', eventType: '', subscription: '' };
  readonly #arrivals = new Map<string, Arrival>();
  readonly #unsigned: string[] = [];
  #receiver: TlsReceiver | null = null;
  #isRepaired = false;
  #customerAnswers = Promise.withResolvers<void>();
  #endpointSecret = '';
  #before: Record<string, object> = {};

  /** `authority`: one that the workers trust. */
  async start(authority: CertificateAuthority): Promise<void> {
    const address = addressOfThisMachine();
    this.#receiver = await startTlsReceiver({ tls: authority.issue([address]), address, respond: (request) => this.#receive(request) });
    const organization = this.#shop.organization([`${address}/32`]);
    await kubectlApply([organization]);
    await kubectl(['wait', '--for=condition=Ready', `organization/${this.#shop.name}`, '--timeout=120s']);
    await kubectlApply([this.#shop.apiKeyManifest]);
    await kubectl(['-n', this.#shop.name, 'wait', '--for=condition=Ready', 'apikey/e2e', '--timeout=120s']);
    await this.#withApi(async (rest, url) => {
      // The server follows what the controller writes.
      await eventually('the key to be let in', 120_000, async () => (await rest.send('GET', '/api/sources')).status === 200);
      await this.#makeRoutes(rest, url);
      await this.#makeWebhook(rest);
      await eventually('what is retried later to have failed once', 120_000, async () => {
        const { body: deliveries } = await rest.send('GET', '/api/deliveries?status=retrying&limit=100');
        return deliveries.data.length === events;
      });
      await eventually(
        'the failure of the customer to be written',
        120_000,
        async () => (await rest.send('GET', this.#made.endpoint)).body.data.circuitFailureCount === 1,
      );
      this.#before = await this.#records(rest, url);
    });
  }

  /** Throws unless the key is accepted as before, and all that was made is there as it was. */
  async isAsItWas(): Promise<void> {
    await this.#withApi(async (rest, url) => expect(await this.#records(rest, url)).toMatchObject(this.#before));
  }

  /** Lets what waits be delivered; throws unless each arrives once, as the message that it was. */
  async finish(): Promise<void> {
    this.#isRepaired = true;
    await this.#withApi(async (rest) => {
      const ask = async (method: 'PATCH' | 'POST', path: string, body?: object) =>
        expect([path, (await rest.send(method, path, body)).status]).toEqual([path, 200]);
      await ask('PATCH', this.#made.paused, { isActive: true });
      await ask('POST', `${this.#made.circuit}/reset-circuit`);
      await ask('PATCH', this.#made.endpoint, { isDisabled: false });
      await eventually('everything to be delivered', 480_000, async () => {
        const { body: deliveries } = await rest.send('GET', '/api/deliveries?limit=100');
        const { body: messages } = await rest.send('GET', '/api/outbound-messages?limit=100');
        const states = [...deliveries.data, ...messages.data].map(({ status }: { status: string }) => status);
        return states.length === 3 * events + 1 && states.every((state) => state === 'delivered' || state === 'success');
      });
    });
    const arrivals = [...this.#arrivals.values()];
    expect(arrivals).toHaveLength(3 * events + 1);
    expect(arrivals.filter(({ answers }) => answers.indexOf(200) !== answers.length - 1)).toEqual([]);
    expect(arrivals.filter(({ webhookIds }) => webhookIds.size !== 1)).toEqual([]);
    expect(this.#answersAt('/later').sort()).toEqual([...Array(events).fill(200), ...Array(events).fill(503)]);
    expect(this.#answersAt('/customer')).toEqual([503, 200]);
    expect(this.#unsigned).toEqual([]);
  }

  async remove(): Promise<void> {
    this.#customerAnswers.resolve();
    await this.#receiver?.stop();
    await kubectl(['delete', 'organization', this.#shop.name, '--ignore-not-found', '--wait=true', '--timeout=120s']);
    await kubectl(['delete', 'namespace', this.#shop.name, '--ignore-not-found', '--wait=true', '--timeout=120s']);
  }

  async #makeRoutes(rest: RestClient, url: string): Promise<void> {
    const source = await this.#make(rest, 'sources', { name: 'Orders', provider: 'generic' });
    this.#made.source = `/api/sources/${source.id}`;
    const route = async (name: 'later' | 'paused' | 'circuit', retryPolicy: object, settings: object): Promise<void> => {
      const { id } = await this.#make(rest, 'destinations', { name, url: this.#receiver?.url(`/${name}`), retryPolicy });
      const made = await this.#make(rest, 'routes', { name, sourceId: source.id, destinationIds: [id], ...settings });
      this.#made[name] = `/api/routes/${made.id}`;
    };
    await route('later', later, { circuitFailureThreshold: 100 });
    await route('paused', soon, { isActive: false });
    await route('circuit', soon, { circuitFailureThreshold: 1, circuitCooldownSeconds: 86_400, circuitProbeSuccessThreshold: 1 });
    for (const kind of ['sources', 'destinations', 'routes'])
      await kubectl(['-n', this.#shop.name, 'wait', '--for=condition=Ready', kind, '--all', '--timeout=120s']);
    const { slug } = (await rest.send('GET', this.#made.source)).body;
    const isOpen = async () => (await rest.send('GET', this.#made.circuit)).body.circuitState === 'open';
    for (let number = 1; number <= events; number++) {
      const body = Buffer.from(JSON.stringify({ number }));
      const { status } = await ingest(url, `${this.#shop.name}/${slug}`, { headers: { 'content-type': 'application/json' }, body });
      expect(status).toBe(200);
      if (number === 1) await eventually('the circuit to open', 120_000, isOpen);
    }
  }

  async #makeWebhook(rest: RestClient): Promise<void> {
    const eventType = await this.#make(rest, 'event-types', { name: 'order.paid' });
    const application = await this.#make(rest, 'webhook-applications', { name: 'Acme Corporation', externalId: 'customer-17' });
    const endpoint = await this.#make(rest, 'webhook-endpoints', { applicationId: application.id, url: this.#receiver?.url('/customer') });
    const ends = { endpointId: endpoint.id, eventTypeId: eventType.id };
    const subscription = await this.#make(rest, 'webhook-subscriptions', ends);
    this.#made.eventType = `/api/event-types/${eventType.id}`;
    this.#made.application = `/api/webhook-applications/${application.id}`;
    this.#made.endpoint = `/api/webhook-endpoints/${endpoint.id}`;
    this.#made.subscription = `/api/webhook-subscriptions/${subscription.id}`;
    this.#endpointSecret = endpoint.secret;
    const sent = await rest.send('POST', '/api/send-event', { eventType: 'order.paid', payload: { number: 1 } });
    expect([sent.status, sent.body.data?.messagesQueued]).toEqual([201, 1]);
    await eventually('the customer to be asked', 120_000, () => this.#answersAt('/customer').length === 1);
    // Its retry finds the endpoint disabled, however soon it is due.
    expect((await rest.send('PATCH', this.#made.endpoint, { isDisabled: true })).status).toBe(200);
    this.#customerAnswers.resolve();
  }

  async #make(rest: RestClient, path: string, body: object) {
    const answer = await rest.send('POST', `/api/${path}`, body);
    expect([path, answer.status]).toEqual([path, 201]);
    return answer.body.data ?? answer.body;
  }

  /** What was made, by its path; what is there at the URL, which is another each time, without it. */
  async #records(rest: RestClient, url: string): Promise<Record<string, object>> {
    const records: Record<string, object> = {};
    for (const path of Object.values(this.#made)) {
      const { status, body } = await rest.send('GET', path);
      records[path] = { status, body: JSON.parse(JSON.stringify(body).replaceAll(url, '')) };
    }
    return records;
  }

  async #receive(request: TlsRequest): Promise<number> {
    const { number } = event.parse(JSON.parse(request.body.toString('utf8')));
    const place = `${request.path} ${number}`;
    const arrival = this.#arrivals.get(place) ?? { answers: [], webhookIds: new Set() };
    this.#arrivals.set(place, arrival);
    const isFirst = arrival.answers.length === 0;
    const works = request.path === '/paused' || (request.path === '/circuit' ? this.#isRepaired : !isFirst);
    arrival.webhookIds.add(request.headers['webhook-id']);
    arrival.answers.push(works ? 200 : 503);
    if (request.path === '/customer') {
      if (!verifies(request, this.#endpointSecret)) this.#unsigned.push(place);
      if (isFirst) await this.#customerAnswers.promise;
    }
    return works ? 200 : 503;
  }

  #answersAt(path: string): number[] {
    return [...this.#arrivals].flatMap(([place, { answers }]) => (place.startsWith(`${path} `) ? answers : []));
  }

  /** Through a connection of its own: those of before end with the pods that they led to. */
  async #withApi(act: (rest: RestClient, url: string) => Promise<void>): Promise<void> {
    const forward = await portForward('posthorn-system', 'service/posthorn-api', 80);
    const url = `http://127.0.0.1:${forward.port}`;
    try {
      await act(new RestClient(url, this.#shop.apiKey), url);
    } finally {
      await forward.stop();
    }
  }
}
