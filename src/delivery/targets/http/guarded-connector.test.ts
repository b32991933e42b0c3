import type { LookupAddress, lookup as resolve } from 'node:dns';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { startConnectProxy } from '../../../../test/support/connect-proxy.ts';
import { type Receiver, startReceiver } from '../../../../test/support/receiver.ts';
import { systemClock } from '../../../runtime/system-clock.ts';
import { Dispatchers } from './dispatchers.ts';
import { errorType } from './error-type.ts';
import { exchange } from './http-exchange.ts';
import { SentSecrets } from './sent-secrets.ts';

let receiver: Receiver;
let port: string;
let pools: Dispatchers[];

beforeEach(async () => {
  pools = [];
  receiver = await startReceiver((response) => response.setHeader('connection', 'close').end('ok'));
  port = new URL(receiver.url).port;
});
afterEach(async () => {
  await Promise.all(pools.map((each) => each.close()));
  await receiver.close();
});

interface Way {
  allowedCidrs?: string[];
  lookup?: typeof resolve;
  proxyUrl?: string;
  onlyHosts?: string[];
}

/** Sends to an origin as often as wanted; each time what came of it, the status or the kind of error. */
function sender(origin: string, { allowedCidrs = [], lookup, proxyUrl, onlyHosts }: Way = {}): () => Promise<string> {
  const dispatchers = new Dispatchers({
    connections: 4,
    clock: systemClock,
    ...(lookup !== undefined && { lookup }),
    ...(proxyUrl !== undefined && { proxyUrl }),
  });
  pools.push(dispatchers);
  const pool = dispatchers.forRules({
    egress: { allowedCidrs, allowedHosts: [], onlyHosts },
    tls: null,
    usesProxy: proxyUrl !== undefined,
  });
  const request = { origin, path: '/', method: 'POST' as const, headers: [], body: Buffer.from('{}'), secrets: SentSecrets.none };
  return async () => {
    const result = await exchange(pool(), request, { timeoutMs: 30_000, clock: systemClock, signal: new AbortController().signal });
    return result.type === 'error' ? errorType(result.error) : String(result.status);
  };
}

/** DNS that returns these answers in order. */
function answering(...answers: string[][]): typeof resolve {
  const answer = (_: string, __: object, callback: (error: null, found: LookupAddress[]) => void): void =>
    callback(
      null,
      (answers.shift() ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  return answer as typeof resolve;
}

describe('an address in the URL', () => {
  test.each([
    'http://127.0.0.1',
    'http://127.1',
    'http://2130706433',
    'http://0x7f000001',
    'http://0177.0.0.1',
    'http://0',
    'http://[::1]',
    'http://[::]',
    'http://[::ffff:127.0.0.1]',
    'http://[::127.0.0.1]',
    'http://[64:ff9b::127.0.0.1]',
    'http://localhost',
    'http://10.0.0.1',
    'http://172.16.0.1',
    'http://192.168.0.1',
    'http://100.64.0.1',
    'http://169.254.169.254',
    'http://[fe80::1]',
    'http://[fd00:ec2::254]',
    'http://[fc00::1]',
    'http://224.0.0.1',
    'http://255.255.255.255',
    'http://198.18.0.1',
    'http://168.63.129.16',
    'http://100.100.100.200',
    'http://2852039166',
    'http://0xa9fea9fe',
    'http://0xa9.0xfe.0xa9.0xfe',
    'http://0251.0376.0251.0376',
    'http://169.254.43518',
    'http://169.16689662',
    'http://2822734096',
    'http://0x646464c8',
    'http://167772161',
    'http://0xa000001',
    'http://012.0.0.1',
    'http://10.1',
    'http://172.1048577',
    'http://0xac.16.1',
    'http://3232235521',
    'http://0300.0250.1',
    'http://[::ffff:169.254.169.254]',
    'http://[::ffff:a9fe:a9fe]',
    'http://[0:0:0:0:0:ffff:168.63.129.16]',
    'http://[::ffff:10.0.0.1]',
    'http://[::169.254.169.254]',
    'http://[64:ff9b::a9fe:a9fe]',
    'http://[64:ff9b::192.168.0.1]',
    'http://[2002:a9fe:a9fe::1]',
    'http://[2002:c0a8:1::1]',
    'http://[100:0:0:1::1]',
    'http://[4000::1]',
    'http://127.0.0.1.',
    'http://127.1.',
    'http://169.254.169.254.',
    'http://LOCALHOST',
    'http://１２７.０.０.１',
    'http://１６９.２５４.１６９.２５４',
    'http://127。0。0。1',
    'http://①②⑦.0.0.1',
    'http://%31%32%37.0.0.1',
    'http://169.254.169.%32%354',
    'http://user:secret@127.0.0.1',
  ])('%s is blocked', async (origin) => {
    expect(await sender(new URL(origin).origin)()).toBe('blocked');
  });
});

describe('an answer of DNS', () => {
  test.each(['localhost.', 'metadata.google.internal', '127.0.0.1.nip.example'])(
    'that gives %s a blocked address is blocked',
    async (name) => {
      expect(await sender(`http://${name}:${port}`, { lookup: answering(['127.0.0.1']) })()).toBe('blocked');
      expect(receiver.requests).toEqual([]);
    },
  );

  describe.each<[string, () => Way]>([
    ['', () => ({})],
    [', also through the egress proxy', () => ({ proxyUrl: receiver.url })],
  ])('that has one blocked address beside one that is not is blocked%s', (_, way) => {
    test.each([
      [['127.0.0.1', '127.0.0.3']],
      [['127.0.0.3', '127.0.0.1']],
      [['127.0.0.1', '::1']],
      [['127.0.0.1', '8.8.8.8', 'fd00:ec2::254%1']],
      [['8.8.8.8', '169.254.169.254']],
    ])('%j', async (addresses) => {
      const rules = { ...way(), allowedCidrs: ['127.0.0.1/32'], lookup: answering(addresses) };
      expect(await sender(`http://mixed.example:${port}`, rules)()).toBe('blocked');
      expect(receiver.requests).toEqual([]);
    });
  });

  test('an answer of DNS that is safe at first and blocked later is blocked then', async () => {
    const lookup = answering(['127.0.0.1'], ['127.0.0.3']);
    const send = sender(`http://rebinding.example:${port}`, { allowedCidrs: ['127.0.0.1/32'], lookup });
    expect([await send(), await send()]).toEqual(['200', 'blocked']);
    expect(receiver.requests).toHaveLength(1);
  });
});

describe('a socket that ends at another address than it was opened for', () => {
  // Linux connects the unspecified address to loopback.
  test.each<[string, string, typeof resolve | undefined]>([
    ['as the URL says', 'http://0.0.0.0', undefined],
    ['as DNS says', 'http://elsewhere.example', answering(['0.0.0.0'], ['0.0.0.0'])],
  ])('a socket that ends at another address than it was opened for is checked by where it ends, %s', async (_, origin, lookup) => {
    const way = { ...(lookup !== undefined && { lookup }) };
    expect(await sender(`${origin}:${port}`, { ...way, allowedCidrs: ['0.0.0.0/32'] })()).toBe('blocked');
    expect(receiver.requests).toEqual([]);
    expect(await sender(`${origin}:${port}`, { ...way, allowedCidrs: ['0.0.0.0/32', '127.0.0.1/32'] })()).toBe('200');
  });
});

describe('a host that is not in the list', () => {
  const loopback = ['127.0.0.0/8'];

  test.each(['http://elsewhere.example', 'http://127.0.0.1', 'http://2130706433'])(
    'a host that is not in the list is blocked: %s',
    async (origin) => {
      const lookup = answering(['127.0.0.1']);
      expect(await sender(`${origin}:${port}`, { allowedCidrs: loopback, lookup, onlyHosts: ['hooks.example.com'] })()).toBe('blocked');
      expect(receiver.requests).toEqual([]);
    },
  );

  test('a host that is not in the list is blocked before the proxy gets it, and one in the list is reached through the proxy', async () => {
    const proxy = await startConnectProxy();
    const way = { allowedCidrs: loopback, proxyUrl: proxy.url, onlyHosts: ['hooks.example.com'] };
    expect(await sender(`http://elsewhere.example:${port}`, { ...way, lookup: answering(['127.0.0.1']) })()).toBe('blocked');
    expect(proxy.tunnels).toEqual([]);
    expect(await sender(`http://hooks.example.com:${port}`, { ...way, lookup: answering(['127.0.0.1']) })()).toBe('200');
    await proxy.close();
  });
});
