import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let applicationId: string;
let number = 0;
const url = 'https://hooks.example.com/in';

beforeAll(async () => {
  world = await startFacadeWorld();
  await world.startWorker();
  applicationId = (await send('POST', 'webhook-applications', { name: 'Shop' })).body.data.id;
});
afterAll(() => world.stop());

const send = (method: string, path: string, body: object) => world.request(method, `/api/${path}`, { body });
const destination = (fields: object) => send('POST', 'destinations', { name: `n${++number}`, url, ...fields });
const endpoint = (fields: object) => send('POST', 'webhook-endpoints', { applicationId, url, ...fields });
const list = (byName: Record<string, string>) => Object.entries(byName).map(([name, template]) => ({ name, template }));

test.each<[string, string, string]>([
  ['with an unknown path', '{{ event.idd }}', 'has the unknown path "event.idd": known are event.id, '],
  ['with open braces', '{{ event.id', 'has a placeholder that is not closed'],
  ['beyond ASCII', 'Größe', 'must be printable ASCII'],
  ['with 11 placeholders', '{{ attempt }}'.repeat(11), 'must have at most 10 placeholders'],
  ['of 1025 characters', 't'.repeat(1025), 'must be at most 1024 characters long'],
])('the refusal of a template %s says what is wrong, on a destination and on an endpoint', async (_, template, words) => {
  const [one, other] = [
    await destination({ headerTemplates: { 'X-A': template } }),
    await endpoint({ headerTemplates: list({ 'X-A': template }) }),
  ];
  expect([one.status, one.body.message]).toEqual([400, expect.stringContaining(words)]);
  expect(one.body.message).toContain('headerTemplates');
  expect([other.status, other.body.details]).toEqual([400, { 'headerTemplates[0].template': [expect.stringContaining(words)] }]);
});

describe('a destination', () => {
  test('a destination takes no header of the event that is a credential, and the API warns of one that is not kept', async () => {
    const refused = await destination({ headerTemplates: { 'X-A': '{{ headers.Authorization }}' } });
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('must not take the header authorization')]);
    const warned = await destination({ headerTemplates: { 'X-A': '{{ headers.X-Forwarded-For }}', 'X-B': '{{ headers.X-Topic }}' } });
    expect(warned.status).toBe(201);
    expect(warned.headers.get('warning')).toContain('headerTemplates: x-forwarded-for of a sender is not kept with its event');
  });

  test('a destination keeps its templates when others are not sent, replaces all of them, and has no header both static and templated', async () => {
    const headerTemplates = { 'X-A': '{{ event.id }}', 'X-B': 'b' };
    const { id } = (await destination({ headers: { 'X-C': 'c' }, headerTemplates })).body;
    const change = (fields: object) => send('PATCH', `destinations/${id}`, fields);
    expect((await change({ timeoutMs: 5000 })).body).toMatchObject({ headerTemplates, headers: { 'X-C': 'c' } });
    for (const fields of [{ headerTemplates: { 'x-c': 'a' } }, { headers: { 'x-a': 'a' } }]) {
      const { status, body } = await change(fields);
      expect([status, body.message]).toEqual([400, expect.stringContaining('must not name a header that headers has, too')]);
    }
    expect((await change({ headers: { 'X-A': 'a' }, headerTemplates: { 'X-C': 'c' } })).body).toMatchObject({
      headers: { 'X-A': 'a' },
      headerTemplates: { 'X-C': 'c' },
    });
    expect((await change({ headerTemplates: null })).body.headerTemplates).toEqual({});
  });

  test('a static header may hold braces, which stay as they are', async () => {
    const headers = { 'X-A': '{{ event.id }}' };
    expect((await destination({ headers })).body).toMatchObject({ headers, headerTemplates: {} });
  });
});

describe('an endpoint', () => {
  test('an endpoint keeps its templates when others are not sent, replaces all of them, and has no header both static and templated', async () => {
    const headerTemplates = list({ 'X-A': '{{ event.type }}', 'X-B': 'b' });
    const headers = [{ name: 'X-C', value: 'c' }];
    const { id } = (await endpoint({ headers, headerTemplates })).body.data;
    const change = (fields: object) => send('PATCH', `webhook-endpoints/${id}`, fields);
    expect((await change({ timeoutSeconds: 5 })).body.data).toMatchObject({ headerTemplates, headers });
    const both = [expect.stringContaining('both in headers and in headerTemplates')];
    expect((await change({ headerTemplates: list({ 'x-c': 'a' }) })).body.details).toEqual({ 'headerTemplates[0].name': both });
    expect((await change({ headers: [{ name: 'x-a', value: '' }] })).body.details).toEqual({ 'headers[0].name': both });
    const swapped = { headers: [{ name: 'X-A', value: 'a' }], headerTemplates: list({ 'X-C': 'c' }) };
    expect((await change(swapped)).body.data).toMatchObject(swapped);
    expect((await change({ headerTemplates: [] })).body.data.headerTemplates).toEqual([]);
  });

  test.each<[string, Record<string, string>, string]>([
    ['a header of the event', { 'X-A': '{{ headers.x-a }}' }, 'headerTemplates[0].template'],
    ['the source', { 'X-A': '{{ source }}' }, 'headerTemplates[0].template'],
    ['a header twice', { 'X-A': 'a', 'x-a': 'b' }, 'headerTemplates[1].name'],
    ['a credential', { Authorization: 'Bearer {{ payload.token }}' }, 'headerTemplates[0].name'],
    ['the type of the content', { 'Content-Type': 'text/plain' }, 'headerTemplates[0].name'],
    ['the id of the message', { 'Webhook-Id': '{{ event.id }}' }, 'headerTemplates[0].name'],
    ['no name of a header', { 'X Y': 'a' }, 'headerTemplates[0].name'],
    ['21 headers', Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`X-${n}`, 'a'])), 'headerTemplates'],
  ])('an endpoint with a template of %s is 400 with the field', async (_, templates, field) => {
    const { status, body } = await endpoint({ headerTemplates: list(templates) });
    expect([status, body.details]).toEqual([400, { [field]: [expect.any(String)] }]);
  });
});

test('a Destination of Git whose template takes a credential of the sender has a condition that reports it', async () => {
  const spec = { http: { url, headerTemplates: list({ 'X-A': '{{ headers.X-Api-Key }}' }) } };
  const key = { namespace: 'acme', name: 'of-git' };
  await world.store.apply({ kind: 'Destination', metadata: key, spec }, { manager: 'kubectl', force: true });
  await eventually(async () => {
    const { status } = await world.store.get('Destination', key);
    const message = expect.stringContaining('x-api-key');
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Accepted', status: 'False', reason: 'InvalidHeader', message }),
    );
  });
});

test('a test of a destination and of an endpoint sends the templated headers', async () => {
  const to = await startReceiver();
  const headerTemplates = {
    'X-T-Ids': '{{ event.id }} {{ message.id }} {{ attempt }}',
    'X-T-A': '{{ payload.a }}',
    'X-T-None': '{{ payload.b }}',
  };
  const place = '{{ source }}/{{ route }}/{{ destination }}';
  try {
    const made = (await destination({ url: to.url, headerTemplates: { ...headerTemplates, 'X-T-Place': place } })).body;
    expect((await send('POST', `destinations/${made.id}/test`, { payload: { a: 7 } })).body.success).toBe(true);
    const templates = list({ ...headerTemplates, 'X-T-Place': '{{ event.type }}/{{ application }}/{{ endpoint }}' });
    const { id } = (await endpoint({ headerTemplates: templates })).body.data;
    // The API of this suite takes https alone.
    await world.webhooks.updateEndpoint(await world.organizationId('acme'), id, { url: to.url });
    expect((await send('POST', `webhook-endpoints/${id}/test`, { payload: { a: 7 } })).body.data.success).toBe(true);
    const [first, second] = to.requests.map(({ headers }) => headers);
    const ids = expect.stringMatching(/^(test_\w+) \1 1$/);
    expect(first).toMatchObject({ 'x-t-ids': ids, 'x-t-a': '7', 'x-t-place': `test//${made.slug}` });
    expect(second).toMatchObject({ 'x-t-ids': ids, 'x-t-a': '7', 'x-t-place': `posthorn.test/${applicationId}/${id}` });
    for (const headers of [first, second]) expect(headers).not.toHaveProperty('x-t-none');
  } finally {
    await to.close();
  }
});
