import type { lookup as systemLookup } from 'node:dns';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type CloudHosts, startCloudHosts, storeAnswer } from '../support/cloud-hosts.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const own = 'hooks.acme.example';
const shared = 'a.shared.example';
const unlisted = 'elsewhere.example';
const names = [own, shared, 'shared.example', unlisted, 'discord.com', 'storage.googleapis.com'];
const bucket = (region: string) => `events.s3.${region}.amazonaws.com`;

let world: FacadeWorld;
let hosts: CloudHosts;
let otherKey: string;
/** Names that the worker has resolved by DNS. */
const resolved: string[] = [];

beforeAll(async () => {
  hosts = await startCloudHosts([...names, bucket('eu-central-1'), bucket('us-east-1')], storeAnswer);
  world = await startFacadeWorld();
  await world.addOrganization('other');
  otherKey = await world.addKey('other');
  const asked = ((name: string, ...rest: [object, () => void]) => {
    resolved.push(name);
    hosts.lookup(name, ...rest);
  }) as typeof systemLookup;
  const listed = (pattern: string, organization: string | null = null) => ({ organization, pattern });
  await world.startWorker({
    egress: {
      allowedCidrs: ['127.0.0.0/8'],
      onlyHosts: [listed('*.shared.example'), listed(own, 'acme'), listed('s3.eu-central-1.amazonaws.com', 'acme')],
    },
    lookup: asked,
    extraCa: hosts.authority.text,
  });
});
afterAll(async () => {
  await world.stop();
  await hosts.stop();
});
beforeEach(() => {
  hosts.requests.length = 0;
  resolved.length = 0;
});

// biome-ignore lint/suspicious/noExplicitAny: tests look into any JSON
type Json = any;
const post = async (path: string, body: object = {}, key?: string): Promise<Json> =>
  (await world.request('POST', `/api${path}`, { body, key })).body;
const refusal = (host: string) => `the host ${host} is not allowed: it is not among those that the organization may deliver to`;

async function destinationTest(body: object, key?: string): Promise<Json> {
  const { id } = await world.create('destinations', body, key);
  return await post(`/destinations/${id}/test`, {}, key);
}
async function channelTest(body: object): Promise<Json> {
  const { id } = await world.create('notification-channels', body);
  return await post(`/notification-channels/${id}/test`);
}
async function endpoint(url: string): Promise<string> {
  const application = await post('/webhook-applications', { name: `Of ${url}` });
  return (await post('/webhook-endpoints', { applicationId: application.id ?? application.data?.id, url })).data.id;
}
const credentials = { accessKeyId: 'AKIAEXAMPLE0000000AA', secretAccessKey: 'x'.repeat(40) };

const daily = { cronExpression: '0 6 * * *', timezone: 'UTC', method: 'POST' };

/** Each way out of a worker, to a host; what it reports. */
const ways: [string, (host: string) => Promise<Json>][] = [
  ['the test of a destination', (host) => destinationTest({ url: `https://${host}/` })],
  ['the test of a channel of type webhook', (host) => channelTest({ type: 'webhook', config: { url: `https://${host}/` } })],
  ['the test of a channel of type teams', (host) => channelTest({ type: 'teams', config: { webhookUrl: `https://${host}/hook` } })],
  ['the test of a webhook endpoint', async (host) => await post(`/webhook-endpoints/${await endpoint(`https://${host}/`)}/test`)],
  [
    'the run of a cron job',
    async (host) => {
      const { cronJob } = await post('/cron', { ...daily, name: host, url: `https://${host}/` });
      await post(`/cron/${cronJob.id}/trigger`);
      return (await world.request('GET', `/api/cron/${cronJob.id}/executions`)).body;
    },
  ],
  [
    'the delivery of an event',
    async (host) => {
      const [source, destination] = [await world.create('sources'), await world.create('destinations', { url: `https://${host}/` })];
      const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id] });
      const event = newEvent({ org: await world.organizationId('acme'), sourceId: source.id, destinations: [destination.id] });
      await world.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId: route.id })) });
      return await eventually(async () => {
        const { body } = await world.request('GET', `/api/deliveries/${event.targets[0]?.messageId}`);
        expect(body.attempts).toBeGreaterThan(0);
        return body;
      });
    },
  ],
];

test.each(ways)('%s reaches a listed host', async (_, out) => {
  for (const host of [own, shared]) await out(host);
  expect(new Set(hosts.requests.map(({ host }) => host))).toEqual(new Set([own, shared]));
});

test.each(ways)('%s is blocked at a host that is not listed, whose name is not even resolved', async (_, out) => {
  for (const host of [unlisted, 'shared.example']) expect(JSON.stringify(await out(host))).toContain(refusal(host));
  expect([hosts.requests, resolved]).toEqual([[], []]);
});

test('a host of one organization is not one of another', async () => {
  const url = `https://${own}/`;
  expect(await destinationTest({ url })).toMatchObject({ success: true });
  expect(await destinationTest({ url }, otherKey)).toMatchObject({ success: false, message: expect.stringContaining(refusal(own)) });
  expect(await destinationTest({ url: `https://${shared}/` }, otherKey)).toMatchObject({ success: true });
});

test('a listed store is reached at the host of its bucket, and one that is not listed is blocked', async () => {
  const s3 = (region: string) => ({ type: 's3', config: { bucket: 'events', region, ...credentials } });
  expect(await destinationTest(s3('eu-central-1'))).toMatchObject({ success: true });
  expect(hosts.requests.map(({ host }) => host)).toEqual([bucket('eu-central-1')]);
  expect(JSON.stringify(await destinationTest(s3('us-east-1')))).toContain(refusal(bucket('us-east-1')));
  expect(resolved).toEqual([bucket('eu-central-1')]);
});

test('a channel whose service is not listed is blocked', async () => {
  const tested = await channelTest({ type: 'discord', config: { webhookUrl: 'https://discord.com/api/webhooks/1/canary' } });
  expect(tested).toMatchObject({ success: false, error: 'blocked', message: refusal('discord.com') });
  expect(hosts.requests).toEqual([]);
});
