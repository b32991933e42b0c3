import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { eventually } from '../support/eventually.ts';
import { startTlsReceiver, type TlsReceiver, type TlsReceiverOptions, type TlsRequest } from '../support/tls-receiver.ts';
import { type GithubDelivery, githubDeliveries, githubDeliveryOf } from './github.ts';
import { Shop } from './manifests.ts';
import { ingest, RestClient } from './rest.ts';
import { describeWebhooksForCustomers } from './webhooks-for-customers.ts';
import type { World } from './world.ts';

const filteredEvents = ['push', 'pull_request', 'issues', 'release'];

/** The main job, in any installation: a provider's webhook is verified, routed, filtered, signed, delivered and retried. */
export function describeMainJob(name: string, startWorld: () => Promise<World>): void {
  describe(`the main job in ${name}`, () => {
    const shop = new Shop(`shop-${randomBytes(3).toString('hex')}`);
    const source = `${shop.name}/github`;
    let world: World;
    let rest: RestClient;
    let options: TlsReceiverOptions;
    let everything: TlsReceiver;
    let filtered: TlsReceiver;
    let flaky: TlsReceiver;
    let accepted: { delivery: GithubDelivery; eventId: string }[] = [];

    beforeAll(async () => {
      world = await startWorld();
      rest = new RestClient(world.url, shop.apiKey);
      const tls = world.authority.issue([world.receiverAddress, '127.0.0.1']);
      options = { tls, address: world.receiverAddress };
      everything = await startTlsReceiver(options);
      filtered = await startTlsReceiver(options);
      flaky = await startTlsReceiver({ ...options, respond: (_, number) => (number <= 2 ? 500 : 200) });
      const organization = shop.organization([`${world.receiverAddress}/32`]);
      await world.apply([organization]);
      await world.waitUntilReady(organization);
      const resources = [
        ...shop.secrets,
        shop.apiKeyManifest,
        shop.source,
        shop.destination('everything', everything.url('/hooks/all?from=posthorn')),
        shop.destination('filtered', filtered.url('/hooks/some')),
        shop.route('everything', 'everything'),
        shop.route('filtered', 'filtered', filteredEvents),
      ];
      await world.apply(resources);
      for (const resource of resources.filter(({ apiVersion }) => apiVersion !== 'v1')) await world.waitUntilReady(resource);
    }, 600_000);

    afterAll(async () => {
      await Promise.all([everything, filtered, flaky].map((receiver) => receiver?.stop()));
      await world?.remove(shop.organization([]));
      await world?.stop();
    }, 120_000);

    test('every signed event of a provider is accepted', async () => {
      const deliveries = githubDeliveries(shop.githubSecret);
      expect(deliveries.length).toBeGreaterThanOrEqual(50);
      accepted = [];
      for (const delivery of deliveries) {
        const answer = await ingest(world.ingestUrl, source, delivery);
        expect(answer).toMatchObject({ status: 200, body: { success: true, eventId: expect.stringMatching(/^evt_/) } });
        accepted.push({ delivery, eventId: answer.body.eventId ?? '' });
      }
    });

    test('the receiver of everything gets each of them once, byte for byte, with a signature that verifies', async () => {
      await everything.waitForRequests(accepted.length);
      expect(everything.requests).toHaveLength(accepted.length);
      for (const { delivery, eventId } of accepted) {
        const request = everything.requests.find(({ headers }) => headers['x-github-delivery'] === delivery.id);
        expect(request?.body.equals(delivery.body)).toBe(true);
        expect(request?.method).toBe('POST');
        expect(request?.path).toBe('/hooks/all?from=posthorn');
        expect(request?.headers).toMatchObject({
          'content-type': 'application/json',
          'x-github-event': delivery.event,
          'x-hub-signature-256': delivery.headers['x-hub-signature-256'],
          'x-posthorn-event-id': eventId,
        });
        if (request !== undefined) verify(shop.signingSecret, request);
      }
    });

    test('the filtered route delivers only the events that its filter lets through', async () => {
      const wanted = accepted.filter(({ delivery }) => filteredEvents.includes(delivery.event)).map(({ delivery }) => delivery.id);
      await filtered.waitForRequests(wanted.length);
      expect(filtered.requests.map(({ headers }) => headers['x-github-delivery']).sort()).toEqual(wanted.sort());
      for (const request of filtered.requests) verify(shop.signingSecret, request);
    });

    const isShownAsDelivered = (eventId: string) =>
      eventually(`${eventId} to be shown as delivered`, 30_000, async () => {
        const { status, body } = await rest.send('GET', `/api/events/${eventId}`);
        expect(status).toBe(200);
        return body.status === 'delivered';
      });

    test('the API shows each event as delivered', async () => {
      for (const { eventId } of accepted) await isShownAsDelivered(eventId);
    }, 180_000);

    test('an event with a wrong signature, another body or none is refused with 401 and delivered to nobody', async () => {
      const delivery = githubDeliveryOf('push', shop.githubSecret);
      const { 'x-hub-signature-256': signature = '', 'x-hub-signature': _, ...unsigned } = delivery.headers;
      const altered = Buffer.concat([delivery.body, Buffer.from(' ')]);
      const forged = githubDeliveryOf('push', 'another secret');
      const before = everything.requests.length;
      for (const wrong of [
        forged,
        { headers: unsigned, body: delivery.body },
        { headers: { ...unsigned, 'x-hub-signature-256': signature }, body: altered },
      ]) {
        expect((await ingest(world.ingestUrl, source, wrong)).status).toBe(401);
      }
      const marker = githubDeliveryOf('star', shop.githubSecret);
      await ingest(world.ingestUrl, source, marker);
      await everything.waitForRequests(before + 1);
      expect(everything.requests.slice(before).map(({ headers }) => headers['x-github-delivery'])).toEqual([marker.id]);
    });

    test('a receiver that fails twice gets its third attempt, with the same id and the same bytes', async () => {
      const destination = shop.destination('flaky', flaky.url());
      const route = shop.route('flaky', 'flaky', ['fork']);
      await world.apply([destination, route]);
      await world.waitUntilReady(route);
      // Ingest has the source in memory, and receives the route a moment later.
      const { delivery, body } = await eventually('the route to be in force', 120_000, async () => {
        const sent = githubDeliveryOf('fork', shop.githubSecret);
        const { body: answer } = await ingest(world.ingestUrl, source, sent);
        await flaky.waitForRequests(1);
        return { delivery: sent, body: answer };
      });
      await flaky.waitForRequests(3);
      expect(new Set(flaky.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
      expect(flaky.requests.map(({ headers }) => headers['x-posthorn-attempt'])).toEqual(['1', '2', '3']);
      for (const request of flaky.requests) {
        expect(request.body.equals(delivery.body)).toBe(true);
        verify(shop.signingSecret, request);
      }
      const shown = await eventually('the delivery to be shown as delivered', 30_000, async () => {
        const { body: event } = await rest.send('GET', `/api/events/${body.eventId}`);
        return event.deliveries.find((each: { status: string; attempts: number }) => each.attempts === 3 && each.status === 'delivered');
      });
      const { body: attempts } = await rest.send('GET', `/api/deliveries/${shown.id}`);
      expect(attempts.attemptDetails.map((attempt: { responseStatus: number }) => attempt.responseStatus).sort()).toEqual([200, 500, 500]);
      expect(flaky.requests).toHaveLength(3);
    }, 240_000);

    describeWebhooksForCustomers(() => ({ rest, receivers: options }));

    test('a deleted route stops', async () => {
      await world.remove(shop.route('filtered', 'filtered', filteredEvents));
      const delivered = async (): Promise<void> => {
        const { body } = await ingest(world.ingestUrl, source, githubDeliveryOf('push', shop.githubSecret));
        await isShownAsDelivered(body.eventId ?? '');
      };
      await eventually('the route to be out of force', 60_000, async () => {
        const before = filtered.requests.length;
        await delivered();
        return filtered.requests.length === before;
      });
      const [before, all] = [filtered.requests.length, everything.requests.length];
      for (let i = 0; i < 5; i++) await delivered();
      expect([filtered.requests.length, everything.requests.length]).toEqual([before, all + 5]);
    }, 300_000);

    test('rubbish is refused with a clear answer and changes nothing', async () => {
      const big = { headers: { 'content-type': 'application/json' }, body: Buffer.alloc(10 * 1024 * 1024, 32) };
      expect((await ingest(world.ingestUrl, source, big)).status).toBe(413);
      const malformed = await fetch(`${world.url}/api/routes`, {
        method: 'POST',
        headers: { 'x-api-key': shop.apiKey, 'content-type': 'application/json' },
        body: '{"name":',
      });
      expect({ status: malformed.status, body: await malformed.json() }).toMatchObject({
        status: 400,
        body: { error: 'Bad Request', code: 'MALFORMED_JSON' },
      });
      const unknown = await rest.send('POST', '/api/destinations', { name: 'x', url: 'https://example.com', colour: 'red' });
      expect(unknown).toMatchObject({ status: 400, body: { message: expect.stringContaining('colour') } });
      for (const id of ['..%2f..%2fetc%2fpasswd', '%2e%2e%2f', '..%5c', '%00', 'dst_../../x']) {
        expect([400, 404]).toContain((await rest.send('GET', `/api/destinations/${id}`)).status);
      }
      expect((await fetch(`${world.ingestUrl}/ingest/nobody/nothing`)).status).toBe(404);
    });
  });
}

function verify(secret: string, { headers, body }: TlsRequest): void {
  const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
  new Webhook(secret).verify(body, Object.fromEntries(names.map((name) => [name, String(headers[name])])));
}
