import { expect, test } from '@jest/globals';
import { createCertificateAuthority } from '../../../test/support/certificate-authority.ts';
import { testKeyring } from '../../../test/support/controllers.ts';
import { encryptedKey, rsaKeyOfBits } from '../../../test/support/costly-keys.ts';
import { deliverySuite } from '../../../test/support/delivery-suite.ts';
import { destinationRecord, routeRecord } from '../../../test/support/records.ts';
import { recordSealingContext } from '../../core/sealing-contexts.ts';

const suite = deliverySuite();
const { receiver, worker } = suite;

test.each<[what: string, key: () => string]>([
  ['an RSA key of 16,384 bits', () => rsaKeyOfBits(16_384)],
  ['an encrypted key', () => encryptedKey(0x7fff)],
])('a destination whose record has, from an earlier release, %s of a client is not connected to', async (_, key) => {
  const authority = createCertificateAuthority();
  const { cert } = authority.issue(['127.0.0.1']);
  authority.remove();
  const to = await receiver();
  const seal = (text: string, field: 'clientCertificate' | 'clientKey') =>
    testKeyring.seal(text, recordSealingContext('org_a', 'destination', 'dst_a', field));
  const tls = { ca: null, clientCertificate: seal(cert.toString(), 'clientCertificate'), clientKey: seal(key(), 'clientKey') };
  suite.registry.put('route', routeRecord({}));
  suite.registry.put('destination', destinationRecord({ url: to.url, tls }));
  worker();
  await suite.becomes(await suite.send(), { status: 'dlq', deadLetterReason: 'secret_decryption_failed' });
  expect(to.requests).toEqual([]);
});
