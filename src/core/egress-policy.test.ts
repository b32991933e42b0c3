import { describe, expect, test } from '@jest/globals';
import { organizationRecord } from '../../test/support/records.ts';
import { EgressPolicy, egressRules, RefusedAddresses } from './egress-policy.ts';

const nothing = { allowedCidrs: [], allowedHosts: [] };
const nobody = new RefusedAddresses();

/** The IPv6 addresses that carry an IPv4 one. */
function carriersOf(ipv4: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
  const hex = (...bytes: number[]) => Buffer.from(bytes).toString('hex');
  return [
    `::ffff:${ipv4}`,
    `::${ipv4}`,
    `::${hex(a, b)}:${hex(c, d)}`,
    `::ffff:0:${ipv4}`,
    `2002:${hex(a, b)}:${hex(c, d)}::1`,
    // NAT64: the well-known prefix, and prefixes of /48, /56, /64 and /96 within the one for local use.
    `64:ff9b::${ipv4}`,
    `64:ff9b:1:${hex(a, b)}:${hex(0, c)}:${hex(d, 0)}::`,
    `64:ff9b:1:${hex(0x12, a)}:${hex(0, b)}:${hex(c, d)}::`,
    `64:ff9b:1:1234:${hex(0, a)}:${hex(b, c)}:${hex(d, 0)}:0`,
    `64:ff9b:1:1234:0:5678:${hex(a, b)}:${hex(c, d)}`,
    // Teredo: as server and as client.
    `2001:0:${hex(a, b)}:${hex(c, d)}:8000:63bf:3fff:fdd2`,
    `2001:0:4136:e378:8000:63bf:${hex(255 - a, 255 - b)}:${hex(255 - c, 255 - d)}`,
  ];
}

const metadataIpv4 = [
  '169.254.169.254',
  '169.254.169.252',
  '169.254.170.2',
  '169.254.170.23',
  '169.254.42.42',
  '169.254.0.23',
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
];
const metadataIpv6 = [
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
  'fd00:c1::a9fe:a9fe',
  'fd00:100::100:200',
  'fd00:42::42',
  'fd00:a9fe:a9fe::1',
  'fe80::a9fe:a9fe',
];

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
    // Metadata services and private networks, in what carries IPv4, too.
    ...[...metadataIpv4, '10.0.0.1', '172.16.0.1', '192.168.0.1'].flatMap((ipv4) => [ipv4, ...carriersOf(ipv4)]),
    ...metadataIpv6,
    '::ffff:a9fe:a9fe',
    '::808:808',
    '100::1',
    // Beyond 2000::/3 nothing is allocated.
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

  describe('of everything', () => {
    const refused = new RefusedAddresses();
    refused.add('127.0.0.1', 6379);
    const policy = new EgressPolicy({ ...nothing, allowedCidrs: ['0.0.0.0/0', '::/0'] }, refused);

    test.each([
      ...metadataIpv4.flatMap((ipv4) => [ipv4, ...carriersOf(ipv4)]),
      ...metadataIpv6,
      'fd00:ec2::254%eth0',
      'fe80::a9fe:a9fe%eth0',
    ])('do not open the metadata service at %s', (address) => expect(policy.allows('x', address, 80)).toBe(false));

    test.each(['127.0.0.1', ...carriersOf('127.0.0.1')])(
      'do not open a refused server, as %s, but other ports of its address',
      (address) => {
        expect(policy.allows('x', address, 6379)).toBe(false);
        expect(policy.allows('x', address, 8080)).toBe(true);
      },
    );

    test('hold for what is found while the process runs', () => {
      expect(policy.allows('x', '10.0.0.1', 6443)).toBe(true);
      refused.add('10.0.0.1', 6443);
      expect(policy.allows('x', '10.0.0.1', 6443)).toBe(false);
    });
  });
});

test('what all organizations may reach is added to what an organization allows', () => {
  const organization = organizationRecord({ egress: { allowedCidrs: ['10.1.0.0/16'], allowedHosts: ['own.internal'] } });
  const rules = egressRules({ allowedCidrs: ['10.2.0.0/16'], allowedHosts: ['*.shop.internal'] }, organization);
  const policy = new EgressPolicy(rules, nobody);
  expect(['10.1.0.1', '10.2.0.1', '10.3.0.1'].map((address) => policy.allows('any.example', address, 80))).toEqual([true, true, false]);
  expect(['own.internal', 'a.shop.internal', 'b.internal'].map((host) => policy.allows(host, '10.3.0.1', 80))).toEqual([true, true, false]);
});

describe('a list of hosts', () => {
  const listed = (pattern: string, organization: string | null = null) => ({ organization, pattern });
  const allows = (patterns: string[], host: string): boolean =>
    new EgressPolicy({ ...nothing, onlyHosts: patterns }, nobody).allows(host, '8.8.8.8', 443);

  test.each([
    [['hooks.example.com'], 'hooks.example.com', true],
    [['hooks.example.com'], 'HOOKS.Example.com.', true],
    [['Hooks.Example.com'], 'hooks.example.com', true],
    [['hooks.example.com'], 'a.hooks.example.com', false],
    [['hooks.example.com'], 'hooks.example.com.evil.example', false],
    [['*.example.com'], 'a.b.example.com', true],
    [['*.example.com'], 'example.com', false],
    [['*.example.com'], 'notexample.com', false],
    [['*'], 'anything.example', true],
    [['8.8.8.8'], '8.8.8.8', true],
    [['2001:4860:4860::8888'], '2001:4860:4860::8888', true],
    [['hooks.example.com'], '8.8.8.8', false],
    [[], 'hooks.example.com', false],
  ])('%j decides for the host %s: %s', (patterns, host, expected) => {
    expect(allows(patterns, host)).toBe(expected);
  });

  test('a list of hosts opens no address that is not public', () => {
    expect(new EgressPolicy({ ...nothing, onlyHosts: ['*'] }, nobody).allows('hooks.example.com', '10.0.0.1', 443)).toBe(false);
  });

  test('a list of hosts has hosts of all organizations and of single ones, and without one any host may be reached', () => {
    const onlyHosts = [listed('all.example'), listed('own.example', 'acme'), listed('theirs.example', 'other')];
    const rules = egressRules({ ...nothing, onlyHosts }, organizationRecord({ slug: 'acme' }));
    expect(rules.onlyHosts).toEqual(['all.example', 'own.example']);
    expect(egressRules({ ...nothing, onlyHosts }, null).onlyHosts).toEqual(['all.example']);
    expect(egressRules(nothing, organizationRecord({ slug: 'acme' })).onlyHosts).toBeUndefined();
  });
});

test.each([
  ['93.184.216.34', nothing, null],
  ['10.1.2.3', nothing, 'blocked'],
  ['10.1.2.3', { ...nothing, allowedCidrs: ['10.0.0.0/8'] }, null],
  ['169.254.169.254', { ...nothing, allowedCidrs: ['0.0.0.0/0'] }, 'blocked'],
  ['::1', nothing, 'blocked'],
  ['localhost', nothing, 'blocked'],
  ['Hooks.LocalHost.', nothing, 'blocked'],
  ['localhost', { ...nothing, allowedHosts: ['localhost'] }, 'blocked'],
  ['localhost', { ...nothing, allowedCidrs: ['127.0.0.0/8'] }, null],
  ['localhost', { ...nothing, allowedCidrs: ['::1/128'] }, null],
  ['localhost.example.com', nothing, null],
  ['shop.default.svc', nothing, null],
  ['redis.internal', { ...nothing, allowedHosts: ['*'] }, 'blocked'],
  ['hooks.example.com', { ...nothing, onlyHosts: ['other.example.com'] }, 'unlisted'],
  ['10.1.2.3', { ...nothing, onlyHosts: ['*'] }, 'blocked'],
])('%s with %j is checked as %s before a name is resolved', (host, rules, verdict) => {
  const refused = new RefusedAddresses();
  refused.add('Redis.internal', 443);
  expect(new EgressPolicy(rules, refused).refusalOf(host, 443)).toBe(verdict);
});
