import type { LookupAddress } from 'node:dns';
import { connect, type Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { type CertificateAuthority, createCertificateAuthority } from '../../../../test/support/certificate-authority.ts';
import { kindOf, localEgress, openRules, posted, RawReceivers } from '../../../../test/support/raw-receivers.ts';
import { EgressPolicy, RefusedAddresses } from '../../../core/egress-policy.ts';
import { systemClock } from '../../../runtime/system-clock.ts';
import { type ConnectionRules, Dispatchers } from './dispatchers.ts';
import { guardedConnector } from './guarded-connector.ts';
import { exchange } from './http-exchange.ts';

const receivers = new RawReceivers();
afterEach(() => receivers.close());

let authority: CertificateAuthority;
beforeAll(() => {
  authority = createCertificateAuthority();
});
afterAll(() => authority.remove());

describe('TLS', () => {
  const answer = (socket: Socket): unknown => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
  const trusting = (own: Partial<NonNullable<ConnectionRules['tls']>> = {}): ConnectionRules => ({
    ...openRules,
    tls: { ca: authority.text, cert: null, key: null, ...own },
  });

  test('an authority of the destination is trusted, and no other then', async () => {
    const port = await receivers.listen(answer, authority.issue(['127.0.0.1']));
    expect(kindOf(await receivers.post(`https://127.0.0.1:${port}`, { rules: trusting() }))).toBe('200');
    expect(kindOf(await receivers.post(`https://127.0.0.1:${port}`))).toBe('tls');
    const other = createCertificateAuthority();
    expect(kindOf(await receivers.post(`https://127.0.0.1:${port}`, { rules: trusting({ ca: other.text }) }))).toBe('tls');
    other.remove();
  });

  test.each<[string, () => TlsOptions]>([
    ['an expired certificate', () => authority.issue(['127.0.0.1'], -1)],
    ['a certificate of another host', () => authority.issue(['127.0.0.2'])],
    [
      'an old protocol',
      () => ({ ...authority.issue(['127.0.0.1']), maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }),
    ],
  ])('%s is refused', async (_, options) => {
    const port = await receivers.listen(answer, options());
    expect(kindOf(await receivers.post(`https://127.0.0.1:${port}`, { rules: trusting() }))).toBe('tls');
  });

  test.each(['receiver.example', 'receiver.example.'])('the name of the server that TLS sends for %s has no trailing dot', async (host) => {
    const names: string[] = [];
    const server: TlsOptions = {
      ...authority.issue(['receiver.example']),
      SNICallback: (name, callback) => {
        names.push(name);
        callback(null);
      },
    };
    const port = await receivers.listen(answer, server);
    const lookup = (_: string, __: object, callback: (error: null, found: LookupAddress[]) => void): void =>
      callback(null, [{ address: '127.0.0.1', family: 4 }]);
    const pools = new Dispatchers({ connections: 1, clock: systemClock, lookup });
    receivers.closeAfterwards(pools);
    const request = { origin: `https://${host}:${port}`, ...posted };
    const signal = new AbortController().signal;
    const result = await exchange(pools.forRules(trusting())(), request, { timeoutMs: 30_000, clock: systemClock, signal });
    expect([kindOf(result), names]).toEqual(['200', ['receiver.example']]);
  });

  test('a certificate is shown to a receiver that requests one', async () => {
    const shown: string[] = [];
    const server = { ...authority.issue(['127.0.0.1']), ca: authority.text, requestCert: true, rejectUnauthorized: true };
    const port = await receivers.listen((socket) => {
      if ('getPeerCertificate' in socket && typeof socket.getPeerCertificate === 'function')
        shown.push(socket.getPeerCertificate().subject.CN);
      answer(socket);
    }, server);
    const own = authority.issue(['10.0.0.1']);
    const rules = trusting({ cert: own.cert.toString(), key: own.key.toString() });
    expect(kindOf(await receivers.post(`https://127.0.0.1:${port}`, { rules }))).toBe('200');
    expect(shown).toEqual([expect.stringMatching(/^server-/)]);
    expect((await receivers.post(`https://127.0.0.1:${port}`, { rules: trusting() })).type).toBe('error');
  });
});

describe('the egress proxy', () => {
  const proxied: ConnectionRules = { ...openRules, usesProxy: true };

  /** A proxy that records its requests and passes everything to this port. */
  async function startProxy(target: number, asked: string[]): Promise<number> {
    return await receivers.listen((socket, request) => {
      asked.push(request);
      const through = connect(target, '127.0.0.1', () => {
        socket.removeAllListeners('data');
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        socket.pipe(through).pipe(socket);
      });
      through.on('error', () => socket.destroy());
      socket.on('close', () => through.destroy());
    });
  }

  test('the egress proxy carries plain and TLS deliveries to the address that was checked', async () => {
    const answer = (socket: Socket): unknown => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    const asked: string[] = [];
    const plain = await receivers.listen(answer);
    const proxyUrl = `http://me:se%3Acret@127.0.0.1:${await startProxy(plain, asked)}`;
    expect(
      kindOf(
        await receivers.post(`http://localhost:${plain}`, {
          rules: { ...proxied, egress: { ...localEgress, allowedCidrs: ['127.0.0.0/8', '::1/128'] } },
          proxyUrl,
        }),
      ),
    ).toBe('200');
    expect(asked[0]).toMatch(new RegExp(`^CONNECT (127\\.0\\.0\\.1|\\[::1\\]):${plain} HTTP/1.1\r\n`));
    expect(asked[0]?.toLowerCase()).toContain(`proxy-authorization: basic ${Buffer.from('me:se:cret').toString('base64').toLowerCase()}`);
    const secure = await receivers.listen(answer, authority.issue(['127.0.0.1']));
    const rules = { ...proxied, tls: { ca: authority.text, cert: null, key: null } };
    const secureProxy = `http://127.0.0.1:${await startProxy(secure, asked)}`;
    expect(kindOf(await receivers.post(`https://127.0.0.1:${secure}`, { rules, proxyUrl: secureProxy }))).toBe('200');
    expect(kindOf(await receivers.post(`https://127.0.0.1:${secure}`, { rules: proxied, proxyUrl: secureProxy }))).toBe('tls');
  });

  test('a receiver that speaks Diffie-Hellman over integers alone, of a size that it chooses, is refused, also behind the egress proxy', async () => {
    const rsa = createCertificateAuthority('rsa');
    const own = { ...rsa.issue(['127.0.0.1']), maxVersion: 'TLSv1.2', dhparam: 'auto' } as const;
    rsa.remove();
    const answer = (socket: Socket): unknown => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    const rules = { ...openRules, tls: { ca: rsa.text, cert: null, key: null } };
    const kinds = async (ciphers: string): Promise<string[]> => {
      const port = await receivers.listen(answer, { ...own, ciphers });
      const url = `https://127.0.0.1:${port}`;
      const proxyUrl = `http://127.0.0.1:${await startProxy(port, [])}`;
      return [
        kindOf(await receivers.post(url, { rules })),
        kindOf(await receivers.post(url, { rules: { ...rules, usesProxy: true }, proxyUrl })),
      ];
    };
    expect(await kinds('DHE-RSA-AES128-GCM-SHA256')).toEqual(['tls', 'tls']);
    expect(await kinds('DHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256')).toEqual(['200', '200']);
  });

  test('the egress proxy gets each address of a name in turn', async () => {
    const asked: string[] = [];
    const proxy = await receivers.listen((socket, request) => {
      asked.push(request.split('\r\n')[0] ?? '');
      if (request.includes('127.0.0.2')) socket.write('HTTP/1.1 200 OK\r\n\r\n');
      else if (request.startsWith('CONNECT')) socket.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n');
      else socket.end('HTTP/1.1 204 No Content\r\n\r\n');
    });
    // biome-ignore lint/suspicious/noExplicitAny: the overloads of dns.lookup
    const lookup: any = (_: string, __: unknown, callback: (error: null, found: { address: string; family: number }[]) => void) =>
      callback(null, [
        { address: '::1', family: 6 },
        { address: '127.0.0.2', family: 4 },
      ]);
    const policy = new EgressPolicy({ ...localEgress, allowedCidrs: ['127.0.0.0/8', '::1/128'] }, new RefusedAddresses());
    const agent = new Agent({
      connect: guardedConnector({ policy, tls: {}, proxy: new URL(`http://127.0.0.1:${proxy}`), clock: systemClock, lookup }),
    });
    const request = { origin: 'http://both.example:81', ...posted };
    const result = await exchange(agent, request, { timeoutMs: 30_000, clock: systemClock, signal: new AbortController().signal });
    expect(kindOf(result)).toBe('204');
    expect(asked).toEqual(['CONNECT [::1]:81 HTTP/1.1', 'CONNECT 127.0.0.2:81 HTTP/1.1', 'POST / HTTP/1.1']);
    await agent.destroy();
  });

  test('the egress proxy gets no address that is not allowed', async () => {
    const asked: string[] = [];
    const proxyUrl = `http://127.0.0.1:${await startProxy(1, asked)}`;
    const rules = { ...proxied, egress: { ...localEgress, allowedCidrs: [] } };
    for (const host of ['127.0.0.1', 'localhost', '169.254.169.254', '[::1]'])
      expect(kindOf(await receivers.post(`http://${host}:80`, { rules, proxyUrl }))).toBe('blocked');
    expect(asked).toEqual([]);
  });

  test.each<[string, (socket: Socket) => void, string]>([
    ['refuses', (socket) => socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'), 'network'],
    ['closes', (socket) => socket.end(), 'network'],
    ['says nothing', () => {}, 'timeout'],
  ])('the egress proxy that %s fails the attempt', async (_, answer, kind) => {
    const proxyUrl = `http://127.0.0.1:${await receivers.listen(answer)}`;
    const result = await receivers.post('http://127.0.0.1:9', { rules: proxied, proxyUrl, ...(kind === 'timeout' && { deadlineMs: 400 }) });
    expect(kindOf(result)).toBe(kind);
  });

  test('the egress proxy that is not configured fails the attempt, and nothing goes around it', async () => {
    let requests = 0;
    const port = await receivers.listen(() => requests++);
    const result = await receivers.post(`http://127.0.0.1:${port}`, { rules: proxied });
    expect(result).toMatchObject({ type: 'error', error: { message: 'useStaticIp: this installation has no egress proxy' } });
    expect(requests).toBe(0);
  });
});
