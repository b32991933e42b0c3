import { describe, expect, test } from '@jest/globals';
import { AddressList } from './address-list.ts';
import { clientAddress, clientNetwork } from './client-address.ts';

const trusted = new AddressList(['10.0.0.0/8', 'fd00::/8']);

function sender(connected: string, forwarded: string | undefined, proxies = trusted): string {
  return clientAddress(connected, forwarded, proxies);
}

describe('the sender', () => {
  test.each<[string, string, string | undefined, string]>([
    ['is who connects', '192.0.2.1', undefined, '192.0.2.1'],
    ['is who connects, whatever an untrusted one forwards', '192.0.2.1', '198.51.100.1', '192.0.2.1'],
    ['is who a trusted proxy names', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
    [
      'is the last one before the trusted proxies, not what the sender claims',
      '10.0.0.1',
      '1.1.1.1, 198.51.100.1, 10.9.9.9',
      '198.51.100.1',
    ],
    ['is the proxy when it names nobody', '10.0.0.1', undefined, '10.0.0.1'],
    ['is the first when all are trusted', '10.0.0.1', '10.0.0.3,10.0.0.2', '10.0.0.3'],
    ['is the proxy when it forwards no address', '10.0.0.1', '198.51.100.1, unknown', '10.0.0.1'],
    ['may have a port', '10.0.0.1', '198.51.100.1:4711', '198.51.100.1'],
    ['may have a port in IPv6', 'fd00::1', '[2001:db8::1]:4711', '2001:db8::1'],
    ['comes over IPv4 on an IPv6 socket', '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
  ])('%s', (_name, remote, forwarded, expected) => {
    expect(sender(remote, forwarded)).toBe(expected);
  });

  test('the sender is who a process on a unix socket names, and on through trusted proxies; not where the server has a port', () => {
    const list = new AddressList(['10.0.0.0/8'], { includesUnixSocket: true });
    expect(sender('', '1.1.1.1, 198.51.100.1', list)).toBe('198.51.100.1');
    expect(sender('', '1.1.1.1, 198.51.100.1, 10.0.0.1', list)).toBe('198.51.100.1');
    // Here the client has gone: what it has sent is not believed.
    expect(sender('', '198.51.100.1')).toBe('');
  });

  test('the sender is who connects where no proxy is trusted', () => {
    expect(sender('10.0.0.1', '198.51.100.1', new AddressList([]))).toBe('10.0.0.1');
  });
});

describe('networks', () => {
  const list = new AddressList(['192.0.2.0/24', '203.0.113.7/32', '2001:db8::/32']);
  test.each(['192.0.2.255', '::ffff:192.0.2.1', '::ffff:c000:201', '203.0.113.7', '2001:db8:ffff::1', '2001:DB8::1', '2001:db8::1%eth0'])(
    'hold %s',
    (address) => {
      expect(list.has(address)).toBe(true);
    },
  );
  test.each(['192.0.3.0', '203.0.113.8', '2001:db9::1', '::1', '', 'unknown', '192.0.2.1:80', '192.0.2'])('do not hold %s', (address) => {
    expect(list.has(address)).toBe(false);
  });
  test('of one family do not hold the other', () => {
    expect(new AddressList(['0.0.0.0/0']).has('::1')).toBe(false);
    expect(new AddressList(['::/0']).has('192.0.2.1')).toBe(false);
    expect(new AddressList(['::/0']).has('::ffff:192.0.2.1')).toBe(false);
  });
});

describe('one client', () => {
  test.each([
    ['is an IPv4 address', '192.0.2.1', '192.0.2.1'],
    ['is an IPv4 address in IPv6 notation', '::ffff:c000:201', '192.0.2.1'],
    ['is a /64 of IPv6', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['is a /64 of IPv6, whatever the zone', 'fe80::1%eth0', 'fe80::/64'],
    ['is a text that is no address', 'unknown', 'unknown'],
  ])('%s', (_, address, expected) => {
    expect(clientNetwork(address)).toBe(expected);
  });
});
