export type Check = () => Promise<unknown>;

export interface Metric {
  name: string;
  labels: RegExp;
  /** Checks one series. Absent: the sum of all series has grown by at least one for each failure of the group that has this metric. */
  is?(value: number): boolean;
}

/** A way to break an installation, with a check for each cell of its row in docs/failures.md. */
export interface Failure {
  make: Check;
  mend: Check;
  kubectl?: Check;
  /** `nothing`: an upgrade succeeds. */
  helm?: 'nothing' | Check;
  readyz?: Check;
  metrics?: readonly Metric[];
  alerts?: readonly string[];
  api?: Check;
  /** A pattern: a warning on the screen Installation. A kind: the number of its objects there that are not Ready. */
  console?: RegExp | { notReady: string } | Check;
  /** Runs between two scrapes. */
  meanwhile?: Check;
}

/** By the name of the row. */
export type Failures = Readonly<Record<string, Failure>>;

/** The cells that all failures with an object that is not Ready have in common. */
export const notReady = (kind: string) => ({
  metrics: [{ name: 'posthorn_objects', labels: new RegExp(`kind="${kind}",state="not_ready"`) }],
  alerts: ['PosthornObjectsNotReady'],
  console: { notReady: kind },
});

/** A process has a check of `/readyz` that fails. */
export const failing = (check: string): Metric => ({
  name: 'posthorn_readiness',
  labels: new RegExp(`check="${check}"`),
  is: (value) => value === 0,
});
