import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CertificateAuthority, createCertificateAuthority } from '../../../../test/support/certificate-authority.ts';
import { startReceiver } from '../../../../test/support/receiver.ts';
import { startTlsReceiver } from '../../../../test/support/tls-receiver.ts';
import { systemClock } from '../../../runtime/system-clock.ts';
import { type ConnectionRules, Dispatchers } from './dispatchers.ts';
import { errorType } from './error-type.ts';
import { exchange } from './http-exchange.ts';
import { SentSecrets } from './sent-secrets.ts';

test('a pool that was closed as unused is recreated for the next attempt', async () => {
  const receiver = await startReceiver();
  const dispatchers = new Dispatchers({ connections: 1, clock: systemClock });
  const rules = (i: number) => ({
    egress: { allowedCidrs: ['127.0.0.0/8', `10.${Math.floor(i / 256)}.${i % 256}.0/24`], allowedHosts: [] },
    tls: null,
    usesProxy: false,
  });
  try {
    const first = dispatchers.forRules(rules(0));
    const get = async () => (await first().request({ origin: receiver.url, path: '/', method: 'GET' })).body.text();
    expect(await get()).toBe('ok');
    for (let i = 1; i <= 1000; i++) dispatchers.forRules(rules(i))();
    expect(await get()).toBe('ok');
  } finally {
    await dispatchers.close();
    await receiver.close();
  }
});

describe('an open connection serves nobody', () => {
  let authority: CertificateAuthority;
  let other: CertificateAuthority;
  let own: NonNullable<ConnectionRules['tls']>;

  beforeAll(() => {
    [authority, other] = [createCertificateAuthority(), createCertificateAuthority()];
    const { cert, key } = authority.issue(['10.0.0.1']);
    own = { ca: authority.text, cert: cert.toString(), key: key.toString() };
  });
  afterAll(() => {
    authority.remove();
    other.remove();
  });

  const egress = { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] };
  test.each<[string, { asksForCertificate: boolean }, () => Partial<ConnectionRules>, unknown]>([
    [
      'that shows no certificate',
      { asksForCertificate: true },
      () => ({ tls: { ...own, cert: null, key: null } }),
      expect.not.stringMatching(/^\d/),
    ],
    [
      'that shows a certificate of another authority',
      { asksForCertificate: true },
      () => {
        const { cert, key } = other.issue(['10.0.0.1']);
        return { tls: { ...own, cert: cert.toString(), key: key.toString() } };
      },
      expect.not.stringMatching(/^\d/),
    ],
    ['that trusts the well-known authorities only', { asksForCertificate: false }, () => ({ tls: { ...own, ca: null } }), 'tls'],
    ['that trusts another authority', { asksForCertificate: false }, () => ({ tls: { ...own, ca: other.text } }), 'tls'],
    ['that has no TLS of its own', { asksForCertificate: false }, () => ({ tls: null }), 'tls'],
    [
      'that may not reach the address',
      { asksForCertificate: false },
      () => ({ egress: { allowedCidrs: [], allowedHosts: [] } }),
      'blocked',
    ],
    [
      'that may reach another network, and hosts of another name',
      { asksForCertificate: false },
      () => ({ egress: { allowedCidrs: ['10.0.0.0/8'], allowedHosts: ['*.internal'] } }),
      'blocked',
    ],
    ['that is to go through a proxy', { asksForCertificate: false }, () => ({ usesProxy: true }), 'network'],
  ])('%s', async (_, { asksForCertificate }, changes, refusal) => {
    const tls = { ...authority.issue(['127.0.0.1']), ca: authority.text, requestCert: asksForCertificate };
    const receiver = await startTlsReceiver({ address: '127.0.0.1', tls });
    const dispatchers = new Dispatchers({ connections: 1, clock: systemClock });
    const rules: ConnectionRules = { egress, tls: own, usesProxy: false };
    const send = async (path: string, from: ConnectionRules): Promise<string> => {
      const request = {
        origin: `https://127.0.0.1:${receiver.port}`,
        path,
        method: 'POST' as const,
        headers: [],
        body: Buffer.from('{}'),
        secrets: SentSecrets.none,
      };
      const options = { timeoutMs: 60_000, clock: systemClock, signal: new AbortController().signal };
      const result = await exchange(dispatchers.forRules(from)(), request, options);
      return result.type === 'error' ? errorType(result.error) : String(result.status);
    };
    try {
      expect(await send('/first', rules)).toBe('200');
      expect(await send('/of-another', { ...rules, ...changes() })).toEqual(refusal);
      expect(await send('/second', rules)).toBe('200');
      expect(receiver.requests.map(({ path }) => path)).toEqual(['/first', '/second']);
    } finally {
      await dispatchers.close();
      await receiver.stop();
    }
  });
});
