import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { AddressList } from './address-list.ts';

/**
 * The sender: the address of the connection; behind trusted proxies the last one in `X-Forwarded-For` that is not such a proxy itself.
 * Entries before an invalid address are not trusted.
 */
export function clientAddress(connected: string, forwarded: string | string[] | undefined, trustedProxies: AddressList): string {
  let address = connected;
  const hops = [forwarded ?? []].flat().join(',').split(',');
  while (trustedProxies.has(address)) {
    const hop = withoutPort((hops.pop() ?? '').trim());
    if (isIP(hop) === 0) break;
    address = hop;
  }
  return address;
}

/** Some proxies write the port behind the address: `192.0.2.1:5000`, `[2001:db8::1]:5000`. */
function withoutPort(text: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
}

const ipv6NetworkBits = 64;

/**
 * One client: an IPv4 address, or the /64 of an IPv6 address, which is the least that a client is given. An IPv4 address in IPv6
 * notation counts as IPv4. Returns what is no address as it is.
 */
export function clientNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toNormalizedString()}/${ipv6NetworkBits}`).toString()}/${ipv6NetworkBits}`;
}
