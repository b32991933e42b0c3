import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { commandConnection } from '../../src/redis/connection.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import { type DescribedOperation, describedOperations, list, members, type Schema } from '../contract/described-operations.ts';
import { DocumentSchemas } from '../contract/document-schemas.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';
import { type ReceivedRequest, type Receiver, startReceiver } from '../support/receiver.ts';
import { bodiesWithSecrets } from './api-bodies.ts';
import { canariesInRedis } from './canaries-in-redis.ts';
import { type Canary, environmentOf, found, newCanary, shownSecret } from './canary.ts';
import { customer, secretHolders } from './manifests.ts';
import { secretFieldsOfKinds, secretNames, secretsInSchema } from './secret-fields.ts';

const directory = mkdtempSync(join(tmpdir(), 'posthorn-canary-'));
const data = join(directory, 'data');
const canaries: Canary[] = [];
/** All responses of the API, but for those that show a secret because an admin requested it. */
const answers: string[] = [];
let url: string;
let key: string;
let opsPort: number;
let program: Program;
let receivers: { ok: Receiver; failing: Receiver };
let operations: DescribedOperation[];
let schemas: DocumentSchemas;
const put = (field: string, name: string, options: { malformed?: boolean } = {}): string => {
  const canary = newCanary(field, name, options);
  canaries.push(canary);
  return canary.value;
};

interface Sent {
  status: number;
  text: string;
  body: Schema;
}

async function send(
  method: string,
  path: string,
  body?: unknown,
  options: { raw?: string; type?: string; shows?: boolean } = {},
): Promise<Sent> {
  const sent = options.raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const headers = {
    authorization: `Bearer ${key}`,
    ...(sent === undefined ? {} : { 'content-type': options.type ?? 'application/json' }),
    ...(method === 'POST' ? { 'idempotency-key': randomBytes(8).toString('hex') } : {}),
  };
  const response = await fetch(url + path, {
    method,
    headers,
    ...(sent === undefined ? {} : { body: sent }),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await response.text();
  if (options.shows !== true) answers.push(`${method} ${path} ${response.status}\n${[...response.headers].join('\n')}\n${text}`);
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, text, body: members(isJson ? JSON.parse(text) : {}) };
}

/** Follows the live stream. Returns what ends it and keeps what it has sent as an answer. */
async function followStream(): Promise<() => Promise<void>> {
  const leaving = new AbortController();
  const response = await fetch(`${url}/api/stream`, { headers: { authorization: `Bearer ${key}` }, signal: leaving.signal });
  let sent = '';
  const read = (async () => {
    for await (const chunk of response.body ?? []) sent += Buffer.from(chunk).toString();
  })().catch(() => undefined);
  return async () => {
    await eventually(() => expect(sent).toContain('event: delivery.'));
    leaving.abort();
    await read;
    answers.push(`GET /api/stream ${response.status}\n${sent}`);
  };
}

beforeAll(async () => {
  const manifests = join(directory, 'manifests');
  mkdirSync(manifests);
  receivers = {
    ok: await startReceiver((response, _, request) => repeat(response, request)),
    failing: await startReceiver((response, _, request) => repeat(Object.assign(response, { statusCode: 500 }), request)),
  };
  const port = await freePort();
  opsPort = await freePort();
  const environment = environmentOf(put);
  url = `http://127.0.0.1:${port}`;
  program = startProgram(['standalone', '--manifests', manifests, '--workers', '2'], {
    POSTHORN_PORT: String(port),
    POSTHORN_OPS_PORT: String(opsPort),
    POSTHORN_DATA_DIR: data,
    POSTHORN_LOG_LEVEL: 'debug',
    POSTHORN_ALLOW_INSECURE_ENDPOINTS: 'true',
    ...environment,
  });
  key = environment['POSTHORN_API_KEY'] ?? '';
  await program.waitForOutput(/^posthorn ready /m, 60_000);
  const document = members((await send('GET', '/openapi.json')).body);
  operations = describedOperations(document);
  schemas = new DocumentSchemas(document);
  await putIntoManifests(manifests);
  await putThroughApi();
  await haveSecretsMade();
  await makeItWork();
}, 360_000);
afterAll(async () => {
  await program?.stop();
  await receivers?.ok.close();
  await receivers?.failing.close();
  rmSync(directory, { recursive: true, force: true });
});

const hopByHop = new Set(['connection', 'content-length', 'transfer-encoding']);

/** Responds as debug pages and some error pages do: with all that was sent, also among the headers. */
function repeat(response: ServerResponse, { path, headers, body }: ReceivedRequest): void {
  for (const [name, value] of Object.entries(headers)) if (!hopByHop.has(name)) response.setHeader(`x-repeated-${name}`, value ?? '');
  response.setHeader('location', `https://receiver.example.com${path}`);
  const basic = /^Basic (.*)$/.exec(headers.authorization ?? '')?.[1] ?? '';
  response.end(JSON.stringify({ path, headers, user: Buffer.from(basic, 'base64').toString(), body: body.toString() }));
}

async function putIntoManifests(manifests: string): Promise<void> {
  for (const { name, secret, object } of await secretHolders(put, [receivers.ok.url, receivers.failing.url]))
    writeFileSync(join(manifests, `${name}.yaml`), `${JSON.stringify(secret)}\n---\n${JSON.stringify(object)}\n`);
  writeFileSync(join(manifests, 'customer.yaml'), JSON.stringify(customer));
  await eventually('the manifests to be loaded', 60_000, async () => {
    const { status } = await send('GET', '/api/destinations/canary-0');
    return status === 200;
  });
}

/** Every body with secrets as it should be, and sent in ways that are refused; then changed, and sent back as it was shown. */
async function putThroughApi(): Promise<void> {
  for (const { path, make } of bodiesWithSecrets(receivers.failing.url)) {
    const isServed = operations.some(({ method, path: each, body: schema }) => {
      const probe = make((name) => newCanary('', name).value);
      return method === 'POST' && each === path && schema !== null && schemas.accepts(schema, probe);
    });
    if (!isServed) continue;
    const body = make((name) => put(`POST ${path} ${name}`, name));
    const created = await send('POST', `/api${path}`, body);
    expect([path, body['name'], created.status, created.status === 201 ? '' : created.text]).toEqual([path, body['name'], 201, '']);
    await send('POST', `/api${path}`, { ...body, nmae: 1 });
    await send('POST', `/api${path}`, { ...body, name: 7 });
    await send('POST', `/api${path}`, { ...body, config: undefined, authConfig: { nonsense: body['authConfig'] ?? body['config'] } });
    await send('POST', `/api${path}`, undefined, { raw: JSON.stringify(body).slice(0, -1) });
    await send('POST', `/api${path}`, body, { type: 'text/plain' });
    await send('PUT', `/api${path}`, body);
    await send('GET', `${path}?search=${encodeURIComponent(String(body['name']))}`);
    const { id } = created.body;
    await send('PATCH', `/api${path}/${id}`, created.body);
    await send('PATCH', `/api${path}/${id}`, { enabled: false, ...body, slug: 'other' });
  }
  const made = await send('POST', '/api/api-keys', { name: 'Canary' }, { shows: true });
  canaries.push({ field: 'API key', value: '', needles: [String(made.body['key']).slice(8)] });
}

/** New secrets of sources, sent and made, and those of webhook endpoints, which sign a message each. */
async function haveSecretsMade(): Promise<void> {
  const rotate = '/sources/{id}/rotate-secret';
  for (const [slug, provider] of Object.entries({ hex: 'generic', standard: 'standard-webhooks' })) {
    await send('POST', '/api/sources', {
      name: slug,
      provider,
      signingSecret: put(`POST /sources signingSecret (${slug})`, 'signingSecret'),
    });
    const path = `/api${rotate.replace('{id}', slug)}`;
    const body = { signingSecret: put(`POST ${rotate} signingSecret`, 'signingSecret'), gracePeriodSeconds: 600 };
    expect(await send('POST', path, body, { shows: true })).toMatchObject({ status: 200, body: { signingSecret: body.signingSecret } });
    await send('POST', path, body);
    await send('POST', path, { ...body, gracePeriod: 1 });
    await send('POST', path, { ...body, gracePeriodSeconds: 'x' });
    const made = await send('POST', path, { gracePeriodSeconds: 0 }, { shows: true });
    note(`POST ${rotate} (made, ${slug})`, made, made.body['signingSecret']);
    await send('POST', `/ingest/default/${slug}`, { n: 'with no signature' });
  }
  const application = members((await send('POST', '/api/webhook-applications', { name: 'Customer' })).body['data'])['id'];
  await send('POST', '/api/event-types', { name: 'order.paid' });
  for (const receiver of [receivers.ok, receivers.failing]) {
    const credential = put('POST /webhook-endpoints value', 'value');
    const created = await send(
      'POST',
      '/api/webhook-endpoints',
      { applicationId: application, url: `${receiver.url}/hook`, headers: [{ name: 'Authorization', value: credential }] },
      { shows: true },
    );
    const { id, secret } = members(created.body['data']);
    note('POST /webhook-endpoints (made)', created, secret);
    const rotated = await send('POST', `/api/webhook-endpoints/${id}/rotate-secret`, {}, { shows: true });
    note('POST /webhook-endpoints/{id}/rotate-secret (made)', rotated, members(rotated.body['data'] ?? rotated.body)['secret']);
    await send('POST', '/api/webhook-subscriptions', { endpointId: id, eventTypeId: 'order.paid' });
  }
  await eventually(async () => {
    const sent = await send('POST', '/api/send-event', { eventType: 'order.paid', payload: {} });
    expect(sent.body).toMatchObject({ data: { messagesQueued: 2 } });
  });
}

function note(field: string, { status, text }: Sent, secret: unknown): void {
  expect([field, status, status < 300 ? '' : text]).toEqual([field, status, '']);
  if (typeof secret !== 'string' || secret.length < 40) throw new Error(`${field} has shown no secret`);
  canaries.push(shownSecret(field, secret));
}

/** Deliveries that succeed and fail, tests and triggers of everything, exports and imports. */
async function makeItWork(): Promise<void> {
  const idsOf = async (path: string): Promise<string[]> => {
    const paged = await send('GET', `/api${path}${path.includes('cron') ? '' : '?pageSize=100'}`);
    // Lists with cursors have a limit instead.
    const { body } = paged.status === 400 ? await send('GET', `/api${path}?limit=100`) : paged;
    return Object.values(body)
      .flatMap(list)
      .flatMap((item) => (isRecord(item) && typeof item['id'] === 'string' ? [item['id']] : []));
  };
  const source = await send('POST', '/api/sources', { name: 'Canary events' });
  for (const destination of await idsOf('/destinations'))
    await send('POST', '/api/routes', {
      name: `To ${destination}`,
      sourceId: source.body['id'],
      destinationIds: [destination],
      circuitFailureThreshold: 1,
      notifyOnFailure: true,
    });
  const endStream = await followStream();
  for (let n = 0; n < 3; n++) await send('POST', '/ingest/default/canary-events', { n });
  await send('POST', '/ingest/default/signed', { n: 'with no signature' });
  await Promise.all([receivers.ok.arrived(3, 30_000), receivers.failing.arrived(3, 30_000)]);
  for (const { path } of operations.filter(({ method, path: each }) => method === 'POST' && /\{id\}\/(test|trigger)$/.test(each))) {
    const ids = await idsOf(path.slice(0, path.indexOf('/{')));
    await Promise.all(ids.map((id) => send('POST', `/api${path.replace('{id}', id)}`)));
  }
  const explained = new Set<string>();
  for (const { path } of operations.filter(
    ({ method, path: each }) => method === 'GET' && each !== '/stream' && each !== '/explain/{id}',
  )) {
    const collection = path.slice(0, path.includes('/{') ? path.indexOf('/{') : undefined);
    const ids = path.includes('{') ? await idsOf(collection) : [''];
    for (const id of ids.slice(0, 60)) await send('GET', `/api${path.replace('{id}', id)}`);
    for (const id of ids.filter((each) => each !== '')) explained.add(id);
  }
  for (const id of explained) await send('GET', `/api/explain/${id}`);
  await endStream();
  for (const path of ['/destinations', '/routes'].filter((each) => operations.some((operation) => operation.path === `${each}/export`))) {
    const { body } = await send('GET', `/api${path}/export?includeSensitive=true`, undefined, { shows: true });
    const [, records] = Object.entries(body).find(([, value]) => Array.isArray(value)) ?? [];
    await send('POST', `/api${path}/import`, { [path.slice(1)]: records, conflictStrategy: 'overwrite' });
    await send('POST', `/api${path}/import`, { [path.slice(1)]: records, conflictStrategy: 'rename' });
    await send('POST', `/api${path}/import`, { [path.slice(1)]: records, conflictStrategy: 'nonsense' });
    await fetch(`${url}/api${path}/export`, { headers: { authorization: `Bearer ${key}`, accept: 'application/yaml' } }).then(
      async (answer) => answers.push(await answer.text()),
    );
  }
}

describe('a secret that is put into every field for one', () => {
  test('a secret that is put into every field for one is in every field of every kind that refers to a Secret', () => {
    for (const field of secretFieldsOfKinds()) expect(canaries.map((canary) => canary.field)).toContain(field);
  });

  test('a secret that is put into every field for one is in every field of the bodies of the API that takes one', () => {
    const names = secretNames();
    for (const { method, path, body } of operations.filter(
      (operation) => operation.method === 'POST' && !operation.path.endsWith('/import'),
    ))
      for (const name of body === null ? [] : secretsInSchema(body, names, schemas))
        expect(canaries.map(({ field }) => field)).toContain(`${method} ${path} ${name}`);
  });

  test('a secret that is put into every field for one is in every environment variable that holds one, but those of a Redis that standalone starts itself', () => {
    const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
    const variables = page.split('\n').flatMap((line) => /^\| `(\w+)` .*standalone.* A secret\./.exec(line)?.[1] ?? []);
    expect(variables.length).toBeGreaterThan(3);
    for (const variable of variables.filter((each) => !each.startsWith('POSTHORN_REDIS_')))
      expect(canaries.map(({ field }) => field)).toContain(variable);
  });

  test('a secret that is put into every field for one reaches those it is for', async () => {
    const token = canaries.find(({ field }) => field === 'POST /destinations token')?.value ?? '-';
    await eventually(() => {
      const received = receivers.failing.requests.map(({ headers }) => JSON.stringify(headers)).join('\n');
      expect(received).toContain(token);
      for (const receiver of [receivers.ok, receivers.failing])
        expect(receiver.requests.filter(({ path }) => path === '/hook').map(({ headers }) => headers['webhook-signature'])).toContainEqual(
          expect.stringMatching(/^v1,\S+ v1,/),
        );
    });
  });

  test('a secret that is put into every field for one is in no answer of the API', () => {
    expect(answers.length).toBeGreaterThan(200);
    expect(answers.filter((answer) => answer.startsWith('GET /api/explain/') && answer.includes(' 200\n')).length).toBeGreaterThan(20);
    expect(answers).toContainEqual(expect.stringMatching(/^GET \/api\/stream 200\n/));
    expect(answers.flatMap((answer) => found(canaries, Buffer.from(answer)))).toEqual([]);
  });

  test('a secret that is put into every field for one is in no header of the attempts that are kept and shown, sent or received', () => {
    const shown = answers.filter((answer) => answer.includes('"x-repeated-'));
    for (const path of ['/deliveries/', '/outbound-messages/', '/cron/', '/destinations/', '/webhook-endpoints/'])
      expect([path, shown.filter((answer) => answer.includes(path)).length > 0]).toEqual([path, true]);
    expect(shown.flatMap((answer) => found(canaries, Buffer.from(answer)))).toEqual([]);
  });

  test('a secret that is put into every field for one is in no line of the logs, at any level', () => {
    expect(program.output()).toMatch(/"level":"?(20|debug)/);
    expect(found(canaries, Buffer.from(program.output()))).toEqual([]);
  });

  test.each(['/readyz', '/livez', '/openapi.json'])('a secret that is put into every field for one is not in %s', async (path) => {
    expect(found(canaries, Buffer.from((await send('GET', path)).text))).toEqual([]);
  });

  test('a secret that is put into every field for one is not in the metrics', async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
    expect(metrics).toContain('posthorn_ingest_requests_total');
    expect(found(canaries, Buffer.from(metrics))).toEqual([]);
  });

  test('a secret that is put into every field for one is in no value of Redis, and in none of its files', async () => {
    const redis = commandConnection(socketIn(data), { name: 'posthorn-test' });
    await redis.connect();
    try {
      const { keys, found: inKeys } = await canariesInRedis(redis, canaries);
      expect(inKeys).toEqual([]);
      expect(keys).toBeGreaterThan(50);
    } finally {
      redis.disconnect();
    }
    for (const file of readdirSync(join(data, 'redis'), { recursive: true, encoding: 'utf8' })) {
      const path = join(data, 'redis', file);
      if (/\.(aof|rdb|log)$/.test(file)) expect([file, found(canaries, readFileSync(path))]).toEqual([file, []]);
    }
  });
});

function socketIn(dataDirectory: string): string {
  const path = join(dataDirectory, 'redis', 'redis.sock');
  if (!existsSync(path)) throw new Error(`there is no ${path}`);
  return path;
}
