import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '../../src/runtime/system-clock.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import { eventually } from '../support/eventually.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

const store = new MemoryStore(systemClock);
let world: FacadeWorld;
let made = 0;

beforeAll(async () => {
  world = await startFacadeWorld({ store });
});
afterAll(() => world.stop());

const [one, two] = [1, 2].map((fill) => `whsec_${Buffer.alloc(32, fill).toString('base64')}`);
const keySecretRef = (name: string) => ({ name, key: 'value' });

/** What a Secret may hold, where the destination refers to it, and what the document of an export has instead. */
const cases: Record<string, { value: string; http: (name: string) => object; exported: object }> = {};
const signed = (title: string, value: string, signingSecret = value) => {
  cases[title] = { value, http: (name) => ({ signingSecretRef: keySecretRef(name) }), exported: { signingSecret } };
};
signed('a signing secret', `${one}`);
signed('a signing secret with a line break behind it', `${one}\n`, one);
signed('a signing secret with line breaks of Windows behind it', `${one}\r\n\r\n`, one);
signed('a signing secret with blanks around it', ` ${one} `);
signed('two signing secrets with a blank between', `${two} ${one}`);
signed('two signing secrets with a line break between and one behind', `${two}\n${one}\n`);
for (const [title, end] of Object.entries({
  nothing: '',
  'a line break': '\n',
  'a line break of Windows': '\r\n',
  'two line breaks': '\n\n',
})) {
  cases[`a token with ${title} behind it`] = {
    value: `long-secret-token${end}`,
    http: (name) => ({ auth: { type: 'bearer', tokenSecretRef: keySecretRef(name) } }),
    exported: { authConfig: { token: 'long-secret-token' } },
  };
  cases[`a password with ${title} behind it`] = {
    value: `long secret password${end}`,
    http: (name) => ({ auth: { type: 'basic', username: 'me', passwordSecretRef: keySecretRef(name) } }),
    exported: { authConfig: { username: 'me', password: 'long secret password' } },
  };
  cases[`a header with ${title} behind it`] = {
    value: `long-secret-header${end}`,
    http: (name) => ({ headers: [{ name: 'X-Team', valueSecretRef: keySecretRef(name) }] }),
    exported: { headers: { 'X-Team': 'long-secret-header' } },
  };
}

describe.each(Object.entries(cases))('%s in a Secret', (_, { value, http, exported }) => {
  test('makes a destination that an export with credentials moves elsewhere, where it is exported as the same', async () => {
    const organization = `org-${++made}`;
    await world.addOrganization(organization, 'enterprise');
    await world.addOrganization(`${organization}-copy`, 'enterprise');
    const [key, copyKey] = [await world.addKey(organization), await world.addKey(`${organization}-copy`)];
    const metadata = (name: string) => ({ name, namespace: organization });
    const data = { value: Buffer.from(value).toString('base64') };
    await store.apply({ kind: 'Secret', metadata: metadata('held'), data }, { manager: 'argocd' });
    const spec = { http: { url: 'https://shop.example.com/', ...http('held') } };
    await store.apply({ kind: 'Destination', metadata: metadata('declared'), spec }, { manager: 'argocd' });
    const exportOf = async (of: string) =>
      (await world.request('GET', '/api/destinations/export?includeSensitive=true', { key: of })).body.destinations;
    await eventually(async () => expect(await exportOf(key)).toMatchObject([exported]));
    const destinations = await exportOf(key);
    const body = { destinations, conflictStrategy: 'skip' };
    const imported = await world.request('POST', '/api/destinations/import', { key: copyKey, body });
    expect(imported.body).toMatchObject({ success: true, errors: [], warnings: [] });
    await eventually(async () => expect(await exportOf(copyKey)).toEqual(destinations));
    const path = '/api/destinations/declared';
    const read = await world.request('GET', path, { key: copyKey });
    expect((await world.request('PATCH', path, { key: copyKey, body: read.body })).status).toBe(200);
    expect(await exportOf(copyKey)).toEqual(destinations);
  });
});

describe('the API takes a signing secret as a Secret may hold it', () => {
  const channel = (secret: string) => ({ type: 'webhook', config: { url: 'https://shop.example.com/', secret } });
  const destination = (signingSecret: string) => ({ url: 'https://shop.example.com/', signingSecret });

  test.each<[string, string, number]>([
    ['one', `${one}`, 201],
    ['one with a line break behind it', `${one}\n`, 201],
    ['two with a blank between', `${two} ${one}`, 201],
    ['two with a line break between and blanks around them', ` ${two}\n${one} `, 201],
    ['two with nothing between', `${one}${two}`, 400],
    ['one beside something else', `${one} short`, 400],
    ['two with a comma between', `${one},${two}`, 400],
    ['nothing', '', 400],
    ['a blank', ' ', 400],
    ['the prefix alone', 'whsec_', 400],
    ['what is no whole Base64', `whsec_${'A'.repeat(33)}`, 400],
    ['thirty', Array.from({ length: 30 }, () => one).join(' '), 400],
  ])('%s', async (_, secret, status) => {
    const answers = [
      await world.request('POST', '/api/destinations', { body: { name: `D${++made}`, ...destination(secret) } }),
      await world.request('POST', '/api/notification-channels', { body: { name: `C${++made}`, ...channel(secret) } }),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([status, status]);
  });
});
