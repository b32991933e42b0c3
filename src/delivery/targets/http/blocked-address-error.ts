/** The address of a receiver is one that deliveries must not reach (DESIGN section 8). */
export class BlockedAddressError extends Error {
  constructor(address: string) {
    super(`the address ${address} is not allowed: it is not public, and neither allowedCidrs nor allowedHosts name it`);
    this.name = 'BlockedAddressError';
  }
}
