import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { consoleSuite } from './console-suite.ts';

const hostile = '<img src=x onerror="document.title=\'taken\'"><script>document.title="taken"</script>';
const description = `of ${hostile}`;

const suite = consoleSuite();
const { made, open, expectSound } = suite;
let receiver: Receiver;
const ids: Record<string, string> = {};
beforeAll(async () => {
  receiver = await startReceiver((response) => {
    response.statusCode = 503;
    response.setHeader('x-answer', hostile);
    response.end(hostile);
  });
  const retryPolicy = { maxRetries: 1, initialDelay: 100, maxDelay: 100, backoffMultiplier: 1 };
  const headers = { 'x-sent': hostile };
  const filterConditions = [{ field: 'payload.a', operator: 'equals', value: hostile }];
  ids['source'] = await made('sources', { name: hostile, description, slug: 'shop' });
  ids['destination'] = await made('destinations', { name: hostile, description, slug: 'billing', url: receiver.url, headers, retryPolicy });
  ids['route'] = await made('routes', { name: hostile, description, slug: 'all', sourceId: 'shop', destinationIds: ['billing'] });
  await made('destinations', { name: hostile, slug: 'unreached', url: receiver.url });
  await made('routes', { name: hostile, slug: 'none', sourceId: 'shop', destinationIds: ['unreached'], filterConditions });
  ids['filter'] = await made('filters', { name: hostile, description, conditions: filterConditions });
  ids['cron'] = await made('cron', { name: hostile, description, cronExpression: '30 12 * * *', url: receiver.url });
  ids['channel'] = await made('notification-channels', { name: hostile, type: 'email', config: { addresses: ['a@example.com'] } });
  ids['application'] = await made('webhook-applications', { name: hostile, metadata: { note: hostile } });
  const url = 'https://hooks.example.com/in';
  ids['endpoint'] = await made('webhook-endpoints', { applicationId: ids['application'], url, description });
  ids['type'] = await made('event-types', { name: 'order.paid', description, category: hostile });
  await made('webhook-subscriptions', { endpointId: ids['endpoint'], eventTypeId: ids['type'] });
  expect((await suite.rest.send('POST', '/api/api-keys', { name: hostile, role: 'viewer' })).status).toBe(201);
  const accepted = await fetch(`${suite.standalone.url}/ingest/default/shop?${encodeURIComponent(hostile)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-received': hostile, 'user-agent': hostile },
    body: JSON.stringify({ [hostile]: hostile }),
  });
  ids['event'] = ((await accepted.json()) as { eventId: string }).eventId;
  ids['delivery'] = await eventually(
    'the dead letter',
    30_000,
    async () => (await suite.rest.send('GET', '/api/deliveries?status=dlq')).body.data[0]?.id as string | undefined,
  );
}, 240_000);
afterAll(() => receiver?.close());

const pathsOf = (): string[] => [
  'overview',
  'targets',
  `targets?at=${ids['destination']}`,
  `targets/${ids['destination']}`,
  `destinations/${ids['destination']}/edit`,
  'events',
  `events?at=${ids['event']}`,
  `events/${ids['event']}`,
  'deliveries',
  `deliveries/${ids['delivery']}`,
  `deliveries/${ids['delivery']}?attempt=2&with=1`,
  'dead-letters',
  'topology',
  'sources',
  `sources?at=${ids['source']}`,
  'routes',
  `routes?at=${ids['route']}`,
  `lab?kind=filter&id=${ids['filter']}`,
  'cron',
  'cron?view=calendar',
  `cron?at=${ids['cron']}`,
  `channels?at=${ids['channel']}`,
  `applications?at=${ids['application']}`,
  `event-types?at=${ids['type']}`,
  `manifests/${ids['destination']}`,
  'access',
];

test('names, descriptions, headers, bodies, queries and errors that are markup stay text on every screen', async () => {
  const page = await open('o/default/overview');
  for (const path of pathsOf()) {
    await page.goto(`${suite.standalone.url}/console/o/default/${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await eventually(`something of it at ${path}`, 30_000, async () => {
      if ((await page.getByText(/^Reading /).count()) > 0) return false;
      const typed = "[...document.querySelectorAll('input, textarea')].map(({ value }) => value).join()";
      const text = String(await page.evaluate(`document.body.textContent + ${typed}`));
      return text.includes('<img src=x onerror=');
    });
    expect([path, await page.locator('img, main script').count(), (await page.title()).startsWith('taken')]).toEqual([path, 0, false]);
    expectSound();
  }
}, 240_000);
