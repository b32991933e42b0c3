import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { storedObject } from '../../test/support/objects.ts';
import { Keyring } from '../core/sealing.ts';
import { compileDestination } from './destination.ts';
import { organizationFacts } from './organization.ts';

test('a Destination with delays of its own has as many retries', () => {
  const spec = { http: { url: 'https://shop.example/hook' }, retryPolicy: { maxRetries: 7, delaysMs: [5000, 60_000, 60_000] } };
  const inputs = {
    organization: organizationFacts(storedObject('Organization', 'acme', { namespace: 'acme' })),
    secrets: {},
    headers: [],
    shard: 0,
    keyring: new Keyring([{ id: 'k1', key: randomBytes(32) }]),
    published: null,
  };
  expect(compileDestination(storedObject('Destination', 'shop', spec, 'acme'), inputs)).toMatchObject({
    record: { retryPolicy: { maxRetries: 3, delaysMs: [5000, 60_000, 60_000] } },
  });
});
