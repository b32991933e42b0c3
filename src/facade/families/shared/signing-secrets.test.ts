import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { standardWebhooksSecrets } from '../../../core/standard-webhooks-secrets.ts';
import { signingSecretsOrMask } from './signing-secrets.ts';

const digits = fc.stringMatching(/^whsec_[A-Za-z0-9+/]{30,90}={0,3}$/);
const encoded = fc.uint8Array({ minLength: 22, maxLength: 66 }).map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`);
const values = fc
  .array(fc.oneof(digits, encoded), { minLength: 1, maxLength: 3 })
  .chain((secrets) => fc.constantFrom('', ' ', '\n', ',').map((between) => secrets.join(between)));

test('a signing secret that the API takes is one that the controller takes, and the other way round', () => {
  fc.assert(
    fc.property(values, (value) => {
      expect([value, signingSecretsOrMask.safeParse(value).success]).toEqual([value, standardWebhooksSecrets(value) !== null]);
    }),
    { numRuns: 3000 },
  );
});
