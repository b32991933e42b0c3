import ipaddr from 'ipaddr.js';
import type { OrganizationRecord } from './records.ts';

export interface EgressRules {
  /** Networks that may be reached although they are not public. */
  allowedCidrs: readonly string[];
  /** Host names, `*.` at the start standing for any labels, whose private addresses may be reached. */
  allowedHosts: readonly string[];
  /** The only hosts that may be reached, public or not: names, `*.` and the end of one, or `*`; absent: any. */
  onlyHosts?: readonly string[] | undefined;
}

/** A host pattern of the installation's list; `organization`: slug of the one that it is for; null: every one. */
export interface ListedHost {
  organization: string | null;
  pattern: string;
}

/** `onlyHosts` absent: any host may be reached. */
export interface InstallationEgress extends Omit<EgressRules, 'onlyHosts'> {
  onlyHosts?: readonly ListedHost[] | undefined;
}

/** Where requests of an organization may go besides public addresses: where all of them may, and what it allows itself. */
export function egressRules(all: InstallationEgress, organization: OrganizationRecord | null): EgressRules {
  const { allowedCidrs = [], allowedHosts = [] } = organization?.egress ?? {};
  const listed = all.onlyHosts?.filter((each) => each.organization === null || each.organization === organization?.slug);
  return {
    allowedCidrs: [...all.allowedCidrs, ...allowedCidrs],
    allowedHosts: [...all.allowedHosts, ...allowedHosts],
    ...(listed !== undefined && { onlyHosts: listed.map(({ pattern }) => pattern) }),
  };
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Metadata services of the clouds, and what gives tasks and pods the credentials of their platform; no rule allows them. */
const metadataAddresses = new Set(
  [
    '169.254.169.254', // nearly every cloud
    'fe80::a9fe:a9fe', // OpenStack, Akamai
    'fd00:ec2::254', // AWS
    '169.254.170.2', // AWS: tasks of ECS
    '169.254.170.23', // AWS: pods of EKS
    'fd00:ec2::23',
    'fd20:ce::254', // Google
    '169.254.169.252', // Google: pods of GKE
    '168.63.129.16', // Azure
    '192.0.0.192', // Oracle
    'fd00:c1::a9fe:a9fe',
    '100.100.100.200', // Alibaba
    'fd00:100::100:200',
    '169.254.0.23', // Tencent
    '169.254.42.42', // Scaleway
    'fd00:42::42',
    'fd00:a9fe:a9fe::1', // Akamai
  ].map((text) => ipaddr.parse(text).toNormalizedString()),
);
/** The only allocated part of IPv6 (RFC 4291 section 2.4); `range` returns unicast for anything unknown. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');
/** IPv6 networks that gateways, and some systems, connect as IPv4, and which bytes are the IPv4 address (`inverted`: their complement). */
const embeddings = [
  { cidr: '::/96', bytes: [12, 13, 14, 15] }, // RFC 4291 section 2.5.5.1
  { cidr: '::ffff:0:0:0/96', bytes: [12, 13, 14, 15] }, // RFC 7915
  { cidr: '2002::/16', bytes: [2, 3, 4, 5] }, // 6to4, RFC 3056
  { cidr: '2001::/32', bytes: [4, 5, 6, 7] }, // Teredo, RFC 4380 section 4: the server
  { cidr: '2001::/32', bytes: [12, 13, 14, 15], inverted: true }, // and the client
  { cidr: '64:ff9b::/96', bytes: [12, 13, 14, 15] }, // NAT64, RFC 6052
  // NAT64 for local use, RFC 8215: a prefix of /48, /56, /64 or /96 (RFC 6052 section 2.2), unknown from the address.
  { cidr: '64:ff9b:1::/48', bytes: [6, 7, 9, 10] },
  { cidr: '64:ff9b:1::/48', bytes: [7, 9, 10, 11] },
  { cidr: '64:ff9b:1::/48', bytes: [9, 10, 11, 12] },
  { cidr: '64:ff9b:1::/48', bytes: [12, 13, 14, 15] },
].map(({ cidr, bytes, inverted = false }) => ({ network: ipaddr.IPv6.parseCIDR(cidr), bytes, inverted }));
/** Ranges that a host pattern opens. Loopback and link-local ones need a CIDR. */
const rangesForHosts = new Set(['private', 'uniqueLocal', 'carrierGradeNat']);

/** Servers that no delivery may reach, whatever is allowed: the API server, Redis. More may be found while the process runs. */
export class RefusedAddresses {
  readonly #servers = new Set<string>();

  /** `host`: an address, or a name under which the server is known. */
  add(host: string, port: number): void {
    this.#servers.add(`${normal(host)} ${port}`);
  }

  /** `host`: an address in its normal form, or a name. */
  has(host: string, port: number): boolean {
    return this.#servers.has(`${normalName(host)} ${port}`);
  }
}

/** Why no delivery reaches a host, whatever its name is resolved to: the list does not have it, or its address is not allowed. */
export type HostRefusal = 'unlisted' | 'blocked';

/** Addresses of names for this very machine (RFC 6761 section 6.3). */
const loopbackAddresses = ['127.0.0.1', '::1'];
const loopbackName = /^(.+\.)?localhost$/;

/** Decides which addresses a delivery may connect to: public ones, and what the rules allow. */
export class EgressPolicy {
  readonly #cidrs: readonly [Address, number][];
  readonly #hosts: readonly string[];
  readonly #onlyHosts: readonly string[] | null;
  readonly #refused: RefusedAddresses;

  constructor(rules: EgressRules, refused: RefusedAddresses) {
    this.#cidrs = rules.allowedCidrs.map((cidr) => ipaddr.parseCIDR(cidr));
    this.#hosts = rules.allowedHosts.map((host) => host.toLowerCase());
    this.#onlyHosts = rules.onlyHosts?.map((host) => host.toLowerCase()) ?? null;
    this.#refused = refused;
  }

  /**
   * Checks the host of a URL before its name is resolved. Null: it is an address that is allowed, or a name whose addresses `allows` must check
   * about.
   */
  refusalOf(host: string, port: number): HostRefusal | null {
    if (!this.#lists(host)) return 'unlisted';
    if (ipaddr.isValid(host)) return this.allows(host, host, port) ? null : 'blocked';
    if (this.#refused.has(host, port)) return 'blocked';
    const isLoopback = loopbackName.test(normalName(host));
    return isLoopback && !loopbackAddresses.some((address) => this.allows(host, address, port)) ? 'blocked' : null;
  }

  /** Whether the host of a URL is listed, where there is a list. */
  #lists(host: string): boolean {
    return this.#onlyHosts === null || matchesHost(host, this.#onlyHosts);
  }

  /** `host` is the name in the URL, `address` its resolved IP address; any spelling of either. */
  allows(host: string, address: string, port: number): boolean {
    if (!ipaddr.isValid(address) || !this.#lists(host)) return false;
    const ip = withoutZone(address);
    const isNeverAllowed = [ip, ...embeddedIn(ip)].some((each) => {
      const text = each.toNormalizedString();
      return metadataAddresses.has(text) || this.#refused.has(text, port);
    });
    if (isNeverAllowed) return false;
    const range = ip.range();
    if (range === 'unicast' && (ip instanceof ipaddr.IPv4 || ip.match(globalUnicast))) return true;
    return (
      this.#cidrs.some(([network, bits]) => contains(network, bits, ip)) || (rangesForHosts.has(range) && matchesHost(host, this.#hosts))
    );
  }
}

/** `patterns`: in lower case. */
export function matchesHost(host: string, patterns: readonly string[]): boolean {
  const name = normalName(host);
  return patterns.some((pattern) => pattern === '*' || (pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern));
}

function contains(network: Address, bits: number, address: Address): boolean {
  if (network instanceof ipaddr.IPv4) return address instanceof ipaddr.IPv4 && address.match(network, bits);
  return address instanceof ipaddr.IPv6 && address.match(network, bits);
}

/** The IPv4 addresses that an IPv6 one may embed. */
function embeddedIn(address: Address): ipaddr.IPv4[] {
  if (address instanceof ipaddr.IPv4) return [];
  const all = address.toByteArray();
  return embeddings
    .filter(({ network }) => address.match(network))
    .map(({ bytes, inverted }) => {
      const ipv4 = all.filter((_, index) => bytes.includes(index));
      return new ipaddr.IPv4(inverted ? ipv4.map((byte) => 255 - byte) : ipv4);
    });
}

/** A zone specifies the interface that reaches an address, not the address. */
function withoutZone(address: string): Address {
  return ipaddr.process(address.replace(/%.*$/, ''));
}

function normal(host: string): string {
  return ipaddr.isValid(host) ? withoutZone(host).toNormalizedString() : normalName(host);
}

function normalName(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}

/** The host and the port of a URL, as egress rules check them. */
export function hostAndPort({ hostname, port, protocol }: Pick<URL, 'hostname' | 'port' | 'protocol'>): { host: string; port: number } {
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}
