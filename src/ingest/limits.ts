import { mebibytes, wholePayloadBytes } from '../core/payload-sizes.ts';

/** Bounds of what one process takes in; the payload's own limit is in the source's record. */
export interface IngestLimits {
  /** Time for the configuration to be read, when it is not in memory. */
  planDeadlineMs: number;
  /** Time that a body above 1 MiB waits for memory, before it is read; after that the response is 503. */
  roomDeadlineMs: number;
  /** Time for the body to arrive. */
  bodyDeadlineMs: number;
  /**
   * Time for the schemas of its routes to be checked, which is longer than they may compute: a check that takes too long is over by then, and
   * the event is accepted. A sender that has waited for so long gets 503 with Retry-After.
   */
  checkDeadlineMs: number;
  /** Time for the event to be stored, after which the sender gets 503 with Retry-After. */
  storeDeadlineMs: number;
  /** The same of one with a payload above 1 MiB, less than its unreferenced chunks live. */
  storeLargeDeadlineMs: number;
  /** Time that a refused request has to end its body before the connection is cut. */
  drainDeadlineMs: number;
  /** Requests under way; more are answered 503. */
  requestsInFlight: number;
  /** Limit of one organization; more are answered 503. One source has three quarters of them while it is alone; see `OpenShares`. */
  requestsOfOrganization: number;
  /** Bytes of bodies up to 1 MiB in memory; more are answered 503. */
  bytesInFlight: number;
  /** Limit of one organization; more are answered 503. For one source as above. */
  bytesOfOrganization: number;
  /** MiB of bodies above 1 MiB in memory; more wait. */
  largeMebibytes: number;
  /** Limit of one organization. */
  largeMebibytesOfOrganization: number;
  /** Limit of one source. */
  largeMebibytesOfSource: number;
}

export const defaultIngestLimits: IngestLimits = {
  planDeadlineMs: 1500,
  roomDeadlineMs: 5000,
  bodyDeadlineMs: 10_000,
  checkDeadlineMs: 10_000,
  storeDeadlineMs: 1500,
  storeLargeDeadlineMs: 15_000,
  drainDeadlineMs: 5000,
  requestsInFlight: 4096,
  requestsOfOrganization: 1365,
  bytesInFlight: 64 * 1024 * 1024,
  bytesOfOrganization: 43 * 1024 * 1024,
  largeMebibytes: 0,
  largeMebibytesOfOrganization: 0,
  largeMebibytesOfSource: 0,
};

/**
 * Gives a process room for four of the largest payloads, where these are above 1 MiB. The last quarter of that is kept for organizations that have less, as is
 * the last quarter of the share of an organization for its sources (`OrganizationBudget`): an organization alone has two of the largest, one for each source.
 */
export function limitsFor(maxPayloadBytes: number): IngestLimits {
  if (maxPayloadBytes <= wholePayloadBytes) return defaultIngestLimits;
  const largest = mebibytes(maxPayloadBytes);
  return {
    ...defaultIngestLimits,
    largeMebibytes: 4 * largest,
    // Three quarters of it, in steps of the least, are two of the largest.
    largeMebibytesOfOrganization: 2 * Math.ceil((largest * 4) / 3),
    largeMebibytesOfSource: largest,
  };
}

/** Options for the http.Server that the handler is mounted on: bounds of what Node reads before the handler is called. */
export const ingestServerOptions = {
  /** Bytes of the request line and all headers; more are 431. */
  maxHeaderSize: 16 * 1024,
  headersTimeout: 5000,
  /** Longer than the body's own deadline, which gives an answer. */
  requestTimeout: 20_000,
  connectionsCheckingInterval: 2500,
  /** Longer than load balancers keep theirs: they would send a request just when the connection ends. */
  keepAliveTimeout: 75_000,
};
