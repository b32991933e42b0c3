/** Bounds of the live streams of a process. */
export const streamLimits = {
  /** One credential has 20 of them while it is alone; see `OpenShares`. */
  perOrganization: 26,
  perProcess: 200,
  /** Rows for one client; what is beyond is skipped. */
  rowsPerSecond: 50,
  /** Rows that arrive while a client gets those that it has missed; beyond them all of these are skipped. */
  waitingRows: 1000,
  /** Text that waits for a client to read; beyond it the client is dropped. */
  pendingBytes: 256 * 1024,
  /** A client that reads nothing for so long, while there is something, is dropped. */
  drainMs: 10_000,
  heartbeatMs: 15_000,
  /** Interval of credential checks. */
  recheckMs: 30_000,
  /** The wait that clients get before they connect again. */
  retryMs: 2000,
};
export type StreamLimits = typeof streamLimits;
