/** The address of a receiver is one that deliveries must not reach. */
export class BlockedAddressError extends Error {
  constructor(address: string) {
    super(`the address ${address} is not allowed: it is not public, and neither allowedCidrs nor allowedHosts name it`);
    this.name = 'BlockedAddressError';
  }
}

/** The host of a receiver is not in the list of those that may be reached. */
export class BlockedHostError extends Error {
  constructor(host: string) {
    super(`the host ${host} is not allowed: it is not among those that the organization may deliver to`);
    this.name = 'BlockedHostError';
  }
}

/** The endpoint is reached by http, and the installation takes only https. */
export class InsecureUrlError extends Error {
  constructor() {
    super('the URL of the endpoint begins with http://, which this installation does not allow');
    this.name = 'InsecureUrlError';
  }
}

/** The delivery is to have a link, and the worker has no address for it. The payload itself is not sent instead. */
export class NoPublicUrlError extends Error {
  constructor() {
    super('a thin delivery needs the public address of the installation, POSTHORN_PUBLIC_URL, which this worker does not have');
    this.name = 'NoPublicUrlError';
  }
}

/** The installation does not send the e-mail, whatever its server would answer. */
export class MailRefusedError extends Error {
  constructor(why: string) {
    super(why);
    this.name = 'MailRefusedError';
  }
}

/** Settings of a warehouse record that are not allowed, or not safe. */
export class WarehouseRefusedError extends Error {}
