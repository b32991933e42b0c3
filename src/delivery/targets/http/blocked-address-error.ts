/** The address of a receiver is one that deliveries must not reach. */
export class BlockedAddressError extends Error {
  constructor(address: string) {
    super(`the address ${address} is not allowed: it is not public, and neither allowedCidrs nor allowedHosts name it`);
    this.name = 'BlockedAddressError';
  }
}
