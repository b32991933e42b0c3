/** Returns the addresses whose domain is none of `domains`: names, or `*.` and the end of a name. No domains: all are allowed. */
export function refusedAddresses(addresses: readonly string[], domains: readonly string[]): string[] {
  if (domains.length === 0) return [];
  return addresses.filter((address) => {
    const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
    return !domains.some((each) => {
      const allowed = each.toLowerCase();
      return allowed.startsWith('*.') ? domain.endsWith(allowed.slice(1)) : domain === allowed;
    });
  });
}

/** Error of the addresses; null: none. */
export function mailDomainProblem(addresses: readonly string[], domains: readonly string[]): string | null {
  const refused = refusedAddresses(addresses, domains);
  return refused.length === 0
    ? null
    : `this installation sends no e-mail to ${refused.slice(0, 5).join(', ')}: it allows ${domains.join(', ')}`;
}
