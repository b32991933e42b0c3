import { isIPv4, isIPv6 } from 'node:net';
import type { Rule } from './definition.ts';
import { text } from './text.ts';

export const cidr = text(3, 49).describe('Network such as 10.0.0.0/8 or fd00::/8.');

/** The rule that each item of the list at `at` is a CIDR, checked as by CEL's `isCIDR` (Go's netip.ParsePrefix). */
export function cidrRule(at: string): Rule {
  return { at: `${at}[]`, cel: 'isCIDR(self)', message: 'must be a network such as 10.0.0.0/8 or fd00::/8', check: isCidr };
}

/** Whether the text is a network in CIDR notation. */
export function isCidr(value: string): boolean {
  const [address = '', bits = '', ...more] = value.split('/');
  if (more.length > 0 || !/^(0|[1-9][0-9]{0,2})$/.test(bits)) return false;
  if (isIPv4(address)) return Number(bits) <= 32;
  // netip refuses zones in prefixes, CEL addresses of IPv4 in IPv6 clothes.
  return isIPv6(address) && !address.includes('%') && !/^::ffff:/i.test(address) && Number(bits) <= 128;
}
