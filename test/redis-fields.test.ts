import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { registryFields } from '../src/data/registry/registry-keys.ts';
import { hashFields } from '../src/data/shard/hash-fields.ts';
import { webhookFields } from '../src/data/webhooks/webhook-fields.ts';
import { snakeCase } from '../src/redis/script-text.ts';
import { storeFields } from '../src/store/redis/store-keys.ts';

const tables = { ...hashFields, ...registryFields, ...webhookFields, ...storeFields };
/** Records of which TypeScript writes and reads most members (`src/data/webhooks/webhook-records.ts`). */
const records = ['webhookApplication', 'webhookEndpoint', 'webhookSubscription'];
const root = new URL('..', import.meta.url).pathname;
const textOf = (file: string): string => readFileSync(join(root, file), 'utf8');

test('no two words of a table of fields denote the same field', () => {
  for (const [hash, fields] of Object.entries(tables)) {
    const names = Object.values(fields);
    expect([hash, names.length]).toEqual([hash, new Set(names).size]);
  }
});

test('a script names each field of the tables, but for kinds of own events, which callers name, and members of records', () => {
  const texts = globSync('src/**/*.lua', { cwd: root }).map(textOf).join('\n');
  for (const [hash, fields] of Object.entries(tables)) {
    if (records.includes(hash)) continue;
    const words = Object.keys(fields).filter((word) => hash !== 'ownEvents' || word === 'notedQuota');
    expect([hash, words.filter((word) => !new RegExp(`F\\.${snakeCase(hash)}\\.${snakeCase(word)}\\b`).test(texts))]).toEqual([hash, []]);
  }
});

test('no code names a field of a hash by letters', () => {
  // A hash of external ids, `ax`, has no letters.
  const ofHash =
    /\.h(?:get|set|del|exists|incrby|mget)(?:Buffer)?\((?:`(?:[^`](?!ax`))*`|[\w.]+(?:\([\w.]*\))?), (?:'[a-z]{1,2}(?::[^']*)?'|`[a-z]{1,2}:\$).*/g;
  const ofEntry = /\.xadd\((?:`[^`]*`|[\w.]+), (?:'[^']*'|`[^`]*`|[\w.]+), '[a-z]{1,2}'.*/g;
  const files = globSync('{src,test}/**/*.ts', { cwd: root });
  expect(files.length).toBeGreaterThan(1000);
  const found = files.flatMap((file) =>
    [ofHash, ofEntry].flatMap((raw) => [...textOf(file).matchAll(raw)].map(([each]) => `${file}: ${each}`)),
  );
  expect(found).toEqual([]);
});
