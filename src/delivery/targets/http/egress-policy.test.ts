import { describe, expect, test } from '@jest/globals';
import { organizationRecord } from '../../../../test/support/record-registry.ts';
import { EgressPolicy, egressRules, RefusedAddresses } from './egress-policy.ts';

const nothing = { allowedCidrs: [], allowedHosts: [] };
const nobody = new RefusedAddresses();

/** An address of the 6to4 network of an IPv4 one. */
function sixToFour(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
  return `2002:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}::1`;
}

describe('without rules', () => {
  const policy = new EgressPolicy(nothing, nobody);

  test.each([
    '8.8.8.8',
    '1.1.1.1',
    '93.184.215.14',
    '100.63.255.255',
    '100.128.0.1',
    '2001:4860:4860::8888',
    '2606:4700::1111',
    '2a00:1450:4001::1',
  ])('the public address %s may be reached', (address) => expect(policy.allows('example.com', address, 443)).toBe(true));

  // After the tables of Smokescreen and Svix.
  test.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '127.255.255.255',
    '169.254.1.1',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '192.31.196.1',
    '192.52.193.1',
    '192.88.99.1',
    '192.168.0.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::1',
    // Metadata services and private networks, in what carries IPv4: mapped, NAT64, translated, compatible, 6to4.
    ...['169.254.169.254', '168.63.129.16', '100.100.100.200', '10.0.0.1', '172.16.0.1', '192.168.0.1'].flatMap((ipv4) => [
      ipv4,
      `::ffff:${ipv4}`,
      `64:ff9b::${ipv4}`,
      `::ffff:0:${ipv4}`,
      `::${ipv4}`,
      sixToFour(ipv4),
    ]),
    '::ffff:a9fe:a9fe',
    '::a9fe:a9fe',
    '::808:808',
    '100::1',
    // Beyond 2000::/3 nothing is given out.
    '1::1',
    '100:0:0:1::1',
    '200::1',
    '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
    '4000::1',
    '8000::1',
    'fe00::1',
    '2001::1',
    '2001:2::1',
    '2001:db8::1',
    '2002:7f00:1::',
    '3fff::1',
    '5f00::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    '127.0.0.1.',
    '%31%32%37.0.0.1',
    'not an address',
    '',
  ])('%j may not be reached', (address) => expect(policy.allows('example.com', address, 443)).toBe(false));
});

describe('rules', () => {
  test('a network opens its addresses only, in IPv4-mapped spelling too', () => {
    const policy = new EgressPolicy({ ...nothing, allowedCidrs: ['10.1.0.0/16', 'fd12::/32'] }, nobody);
    const open = ['10.1.2.3', '::ffff:10.1.2.3', 'fd12::1'];
    expect(open.filter((address) => policy.allows('x', address, 443))).toEqual(open);
    expect(['10.2.0.1', 'fd13::1', '127.0.0.1'].filter((address) => policy.allows('x', address, 443))).toEqual([]);
  });

  test('a host pattern opens private addresses to its names only', () => {
    const policy = new EgressPolicy({ ...nothing, allowedHosts: ['*.shop.svc.cluster.local'] }, nobody);
    expect(policy.allows('api.shop.svc.cluster.local', '10.0.0.1', 80)).toBe(true);
    expect(policy.allows('API.shop.svc.cluster.local.', '10.0.0.1', 80)).toBe(true);
    expect(policy.allows('shop.svc.cluster.local', '10.0.0.1', 80)).toBe(false);
    expect(policy.allows('evilshop.svc.cluster.local', '10.0.0.1', 80)).toBe(false);
    expect(policy.allows('api.shop.svc.cluster.local', '127.0.0.1', 80)).toBe(false);
  });

  test('never open metadata services, or what is refused by address and port', () => {
    const all = ['0.0.0.0/0', '::/0'];
    const refused = new RefusedAddresses();
    const policy = new EgressPolicy({ ...nothing, allowedCidrs: all }, refused);
    expect(policy.allows('x', '127.0.0.1', 6379)).toBe(true);
    refused.add('127.0.0.1', 6379);
    const metadata = ['169.254.169.254', '168.63.129.16', '100.100.100.200'];
    const spellings = metadata.flatMap((ipv4) => [
      ipv4,
      `::ffff:${ipv4}`,
      `64:ff9b::${ipv4}`,
      `::ffff:0:${ipv4}`,
      `::${ipv4}`,
      sixToFour(ipv4),
    ]);
    const never = [...spellings, '::a9fe:a9fe', 'fd00:ec2::254', 'fd00:ec2::254%eth0'];
    expect(never.filter((address) => policy.allows('x', address, 80))).toEqual([]);
    const redis = ['127.0.0.1', '::ffff:127.0.0.1', '64:ff9b::7f00:1', sixToFour('127.0.0.1')];
    expect(redis.filter((address) => policy.allows('x', address, 6379))).toEqual([]);
    expect(policy.allows('x', '127.0.0.1', 8080)).toBe(true);
    expect(policy.allows('x', '64:ff9b::7f00:1', 8080)).toBe(true);
  });
});

test('what all organizations may reach is added to what an organization allows', () => {
  const organization = organizationRecord({ egress: { allowedCidrs: ['10.1.0.0/16'], allowedHosts: ['own.internal'] } });
  const rules = egressRules({ allowedCidrs: ['10.2.0.0/16'], allowedHosts: ['*.shop.internal'] }, organization);
  const policy = new EgressPolicy(rules, nobody);
  expect(['10.1.0.1', '10.2.0.1', '10.3.0.1'].map((address) => policy.allows('any.example', address, 80))).toEqual([true, true, false]);
  expect(['own.internal', 'a.shop.internal', 'b.internal'].map((host) => policy.allows(host, '10.3.0.1', 80))).toEqual([true, true, false]);
});
