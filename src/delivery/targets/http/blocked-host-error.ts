/** The host of a receiver is not in the list of those that may be reached. */
export class BlockedHostError extends Error {
  constructor(host: string) {
    super(`the host ${host} is not allowed: it is not among those that the organization may deliver to`);
    this.name = 'BlockedHostError';
  }
}
