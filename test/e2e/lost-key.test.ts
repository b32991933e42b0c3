import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { RestClient } from './rest.ts';

const directory = mkdtempSync(join(tmpdir(), 'posthorn-e2e-'));
const dataDirectory = join(directory, 'data');
let environment: Record<string, string>;
let url: string;
let program: Program;
let rest: RestClient;

const start = async (): Promise<string> => {
  program = startProgram(['standalone', '--workers', '1'], environment);
  const [, , key = ''] = await program.waitForOutput(/^posthorn ready (\S+)(?: key (\S+))?$/m, 60_000);
  return key;
};

const whsec = (fill: number): string => `whsec_${Buffer.alloc(24, fill).toString('base64')}`;
const unread = '••••';

/** A record with a secret: how it is made, where the answer shows the secret, and what replaces it. */
interface Case {
  collection: string;
  body: Record<string, unknown>;
  shown: object;
  change: object;
  changed: object;
}

const cases: Record<string, Case> = {
  'a destination with a token': {
    collection: 'destinations',
    body: { name: 'token', url: 'http://127.0.0.1:9/', authType: 'bearer', authConfig: { token: 'old-long-secret-token' } },
    shown: { authConfig: { token: unread } },
    change: { authConfig: { token: 'new-long-secret-token' } },
    changed: { authConfig: { token: '••••oken' } },
  },
  'a destination with a header': {
    collection: 'destinations',
    body: { name: 'header', url: 'https://e.example/', headers: { 'x-api-key': 'old-long-secret-header' } },
    shown: { headers: { 'x-api-key': unread } },
    change: { headers: { 'x-api-key': 'new-long-secret-header' } },
    changed: { headers: { 'x-api-key': '••••ader' } },
  },
  'a destination that signs': {
    collection: 'destinations',
    body: { name: 'signs', url: 'https://e.example/', signingSecret: whsec(1) },
    shown: { signingSecret: unread },
    change: { signingSecret: whsec(2) },
    changed: { signingSecret: `••••${whsec(2).slice(-4)}` },
  },
  'a warehouse': {
    collection: 'destinations',
    body: {
      name: 'warehouse',
      type: 's3',
      config: { bucket: 'abc', region: 'eu-west-1', accessKeyId: 'AKIA', secretAccessKey: 'old-long-secret' },
    },
    shown: { config: { secretAccessKey: unread } },
    change: { config: { secretAccessKey: 'new-long-secret' } },
    changed: { config: { secretAccessKey: '••••cret' } },
  },
  'a source': {
    collection: 'sources',
    body: { name: 'source', provider: 'github', signingSecret: 'old-long-secret' },
    shown: { hasSigningSecret: true, signingSecretLast4: null },
    change: { signingSecret: 'new-long-secret' },
    changed: { signingSecretLast4: 'cret' },
  },
  'a channel': {
    collection: 'notification-channels',
    body: { name: 'channel', type: 'pagerduty', config: { routingKey: 'a'.repeat(32), severity: 'error' } },
    shown: { config: { routingKey: unread } },
    change: { config: { routingKey: 'b'.repeat(32), severity: 'error' } },
    changed: { config: { routingKey: '••••bbbb' } },
  },
  'a cron job': {
    collection: 'cron',
    body: { name: 'cron', cronExpression: '0 0 1 1 *', url: 'https://e.example/', headers: { authorization: 'Bearer old-secret' } },
    shown: { cronJob: { headers: `{"authorization":"${unread}"}` } },
    change: { headers: { authorization: 'Bearer new-secret' } },
    changed: { cronJob: { headers: '{"authorization":"••••cret"}' } },
  },
  'a webhook endpoint': {
    collection: 'webhook-endpoints',
    body: { url: 'https://e.example/', headers: [{ name: 'authorization', value: 'Bearer old-secret' }] },
    shown: { data: { headers: [{ name: 'authorization', value: unread }] } },
    change: { headers: [{ name: 'authorization', value: 'Bearer new-secret' }] },
    changed: { data: { headers: [{ name: 'authorization', value: '••••cret' }] } },
  },
};
const pathOf = new Map<string, string>();

beforeAll(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  environment = { POSTHORN_PORT: String(port), POSTHORN_OPS_PORT: String(await freePort()), POSTHORN_DATA_DIR: dataDirectory };
  rest = new RestClient(url, await start());
  const { body: application } = await rest.send('POST', '/api/webhook-applications', { name: 'Customer' });
  for (const [title, { collection, body }] of Object.entries(cases)) {
    const more = collection === 'webhook-endpoints' ? { applicationId: application.data.id } : {};
    const made = await rest.send('POST', `/api/${collection}`, { ...body, ...more });
    expect([title, made.status]).toEqual([title, 201]);
    const { id } = made.body.data ?? made.body.cronJob ?? made.body;
    pathOf.set(title, `/api/${collection}/${id}`);
  }
  const { body: source } = await rest.send('POST', '/api/sources', { name: 'Open' });
  const destinationIds = [pathOf.get('a destination with a token')?.split('/').at(-1)];
  await rest.send('POST', '/api/routes', { name: 'Open', sourceId: source.id, destinationIds });
  await program.stop();
  writeFileSync(join(dataDirectory, 'encryption-keys'), `k1:${randomBytes(32).toString('base64')}`);
  await start();
}, 180_000);
afterAll(async () => {
  await program?.stop();
  rmSync(directory, { recursive: true, force: true });
});

describe('with another encryption key than that under which secrets were stored', () => {
  test('a delivery that needs one ends with the reason, which is in its last error, too', async () => {
    await eventually(async () => expect((await fetch(`${url}/ingest/default/open`, { method: 'POST', body: '{}' })).status).toBe(200));
    const delivery = await eventually('a dead letter', 30_000, async () => {
      const { body } = await rest.send('GET', '/api/deliveries?status=dlq');
      return body.data[0];
    });
    expect(delivery).toMatchObject({
      deadLetterReason: 'secret_decryption_failed',
      lastErrorType: 'secret_decryption_failed',
      lastErrorMessage: expect.stringContaining('does not open'),
    });
  });

  test.each([
    'destinations',
    'sources',
    'notification-channels',
    'cron',
    'webhook-endpoints',
    'destinations/export',
    'destinations/export?includeSensitive=true',
  ])('GET /api/%s is answered', async (path) => {
    expect((await rest.send('GET', `/api/${path}`)).status).toBe(200);
  });

  test.each(Object.entries(cases))(
    '%s is shown, its secret as unreadable, and takes another',
    async (title, { shown, change, changed }) => {
      const path = pathOf.get(title) ?? '';
      const read = await rest.send('GET', path);
      expect(read).toMatchObject({ status: 200, body: shown });
      expect([title, (await rest.send('PATCH', path, change)).status]).toEqual([title, 200]);
      // The write returns before the change is in force when that takes too long.
      await eventually(async () => expect((await rest.send('GET', path)).body).toMatchObject(changed));
    },
  );

  test.each(Object.keys(cases))('%s can be deleted', async (title) => {
    expect([200, 204]).toContain((await rest.send('DELETE', pathOf.get(title) ?? '')).status);
  });
});
