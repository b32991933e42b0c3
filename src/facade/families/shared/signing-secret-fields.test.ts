import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { signingSecretsIn } from '../../../core/signature-scheme.ts';
import { standardWebhooksSecrets } from '../../../core/standard-webhooks-secrets.ts';
import { signingKeysOrMask, signingSecretsOrMask } from './signing-secret-fields.ts';

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

test.each([signingSecretsOrMask, signingKeysOrMask])(
  'a field for signing secrets takes ten of them, and says of more that they are too many',
  (field) => {
    const listed = (count: number): string =>
      Array.from({ length: count }, () => `whsec_${Buffer.alloc(24, 7).toString('base64')}`).join(' ');
    expect(field.safeParse(listed(10)).success).toBe(true);
    expect(field.safeParse(listed(11)).error?.issues.map(({ message }) => message)).toEqual(['contains more than 10 secrets and keys']);
  },
);

const seeds = fc
  .uint8Array({ minLength: 30, maxLength: 66 })
  .map((bytes) => `whsk_${Buffer.from(bytes).toString('base64')}`)
  .chain((key) => fc.constantFrom(key, key.replaceAll('=', ''), key.slice(0, -1)));
const mixed = fc.array(fc.oneof(digits, encoded, seeds, seeds), { minLength: 1, maxLength: 3 }).map((parts) => parts.join(' '));

test('a signing key that the API takes is one that the controller takes or finds another public key in, and the other way round', () => {
  fc.assert(
    fc.property(mixed, (value) => {
      const problems = value.split(' ').map((part) => signingSecretsIn(part).problem);
      const isTaken = problems.every((problem) => problem === undefined || problem.includes('another public key'));
      expect([value, signingKeysOrMask.safeParse(value).success]).toEqual([value, isTaken]);
    }),
    { numRuns: 3000 },
  );
});
