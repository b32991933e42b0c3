import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { describeInCluster } from '../support/in-cluster.ts';
import { closeInstallation, installationScreenShows, openInstallation, pods, warnings } from './broken-installation.ts';
import type { Check, Failure, Failures, Metric } from './failure.ts';
import { groups } from './failure-groups.ts';
import { firingAlerts, type Sample } from './installation-state.ts';
import { patienceMs, rolledOut, upgrade } from './system-commands.ts';

const deployments = ['posthorn-api', 'posthorn-ingest', 'posthorn-controller', 'posthorn-delivery-default'];

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Waits until all have ended, also when one fails, so that none of them runs on beside what follows. Throws the errors of all. */
async function allOf(work: readonly Promise<unknown>[]): Promise<void> {
  const errors = (await Promise.allSettled(work)).flatMap((each): unknown[] => (each.status === 'rejected' ? [each.reason] : []));
  if (errors.length > 0) throw new AggregateError(errors, errors.map(messageOf).join('\n'));
}

/** Makes these checks at the same time. The error of a check names its failure and its column. */
async function inAll(rows: [string, Failure][], ...columns: (keyof Failure)[]): Promise<void> {
  const checks = rows.flatMap(([name, failure]) =>
    columns.flatMap((column) => {
      const check = failure[column];
      return typeof check === 'function' ? [{ what: `${name}, ${column}`, check: check as Check }] : [];
    }),
  );
  await allOf(
    checks.map(async ({ what, check }) => {
      try {
        await check();
      } catch (error) {
        throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
      }
    }),
  );
}

const nameOf = ({ name, labels }: Metric): string => `${name} ${labels}`;
const ofMetric = (samples: readonly Sample[], { name, labels }: Metric): number[] =>
  samples.flatMap((sample) => (sample.name === name && labels.test(sample.labels) ? [sample.value] : []));
const sum = (values: readonly number[]): number => values.reduce((total, each) => total + each, 0);

/** The metrics and alerts of a group of failures. */
class Signs {
  readonly #rows: [string, Failure][];
  readonly #metrics: readonly Metric[];
  readonly #before: readonly Sample[];
  readonly #firedBefore: readonly string[];

  private constructor(rows: [string, Failure][], before: readonly Sample[], firedBefore: readonly string[]) {
    this.#rows = rows;
    this.#metrics = rows.flatMap(([, { metrics = [] }]) => metrics);
    this.#before = before;
    this.#firedBefore = firedBefore;
  }

  static async before(rows: [string, Failure][]): Promise<Signs> {
    const samples = await eventually(() => pods().scrapeAll(), patienceMs);
    const isQuiet = rows.every(([, { alerts = [] }]) => alerts.length === 0);
    return new Signs(rows, samples, isQuiet ? [] : await firingAlerts(samples, samples));
  }

  get #alerts(): string[] {
    return this.#rows.flatMap(([, { alerts = [] }]) => alerts);
  }

  #isSeen(metric: Metric, samples: readonly Sample[], times: number): boolean {
    const values = ofMetric(samples, metric);
    return metric.is === undefined ? sum(values) >= sum(ofMetric(this.#before, metric)) + times : values.some(metric.is);
  }

  async appear(): Promise<void> {
    const times = (metric: Metric): number => this.#metrics.filter((each) => nameOf(each) === nameOf(metric)).length;
    await eventually('the metrics to show it', patienceMs, async () => {
      const samples = await pods().scrape();
      const missing = this.#metrics.filter((metric) => !this.#isSeen(metric, samples, times(metric)));
      if (missing.length > 0) throw new Error(missing.map(nameOf).join(', '));
      return true;
    });
    if (this.#alerts.length === 0) return;
    await eventually(async () => {
      const first = await pods().scrape();
      await inAll(this.#rows, 'meanwhile');
      expect(await firingAlerts(first, await pods().scrape())).toEqual(expect.arrayContaining(this.#alerts));
    }, patienceMs);
  }

  async vanish(): Promise<void> {
    await eventually('the metrics to be as before', patienceMs, async () => {
      const samples = await pods().scrapeAll();
      const left = this.#metrics.filter((metric) => this.#isSeen(metric, samples, 1));
      if (left.length > 0) throw new Error(left.map(nameOf).join(', '));
      return true;
    });
    await rolledOut(...deployments);
    if (this.#alerts.length === 0) return;
    const isNew = (alert: string): boolean => this.#alerts.includes(alert) && !this.#firedBefore.includes(alert);
    await eventually(async () => {
      const now = await pods().scrapeAll();
      expect((await firingAlerts(now, now)).filter(isNew)).toEqual([]);
    }, patienceMs);
  }
}

/** The API and the screen Installation have the warnings of the failures. */
async function expectWarnings(rows: [string, Failure][]): Promise<void> {
  const shown = rows.flatMap(([, { console: each }]) => (each === undefined || typeof each === 'function' ? [] : [each]));
  if (shown.length === 0) return;
  const counts = Map.groupBy(
    shown.flatMap((each) => (each instanceof RegExp ? [] : [each.notReady])),
    (kind) => kind,
  );
  const expectAll = (text: string): void => {
    for (const each of shown) if (each instanceof RegExp) expect(text).toMatch(each);
    for (const [kind, { length }] of counts) {
      const [, count] = new RegExp(`Resources are not Ready: .*\\b${kind} (\\d+)`).exec(text) ?? [];
      expect([kind, Number(count)]).toEqual([kind, expect.any(Number)]);
      expect(Number(count)).toBeGreaterThanOrEqual(length);
    }
  };
  await eventually(async () => expectAll(await warnings()), patienceMs);
  await installationScreenShows(expectAll);
}

/** Makes one upgrade at a time. Rows with the same check share its upgrade. */
async function expectHelm(rows: [string, Failure][]): Promise<void> {
  for (const check of new Set(rows.map(([, { helm }]) => helm))) {
    if (check === undefined) continue;
    await (check === 'nothing' ? upgrade('--wait', '--timeout', `${patienceMs / 1000}s`) : check());
  }
}

describeInCluster('an installation that is broken', () => {
  beforeAll(openInstallation, 480_000);
  afterAll(closeInstallation, 480_000);

  test.each(groups.map((group) => [Object.keys(group).join('; '), group] as const))(
    '%s: each cell of its row is seen, and is gone after it was mended',
    async (_, group: Failures) => {
      const rows = Object.entries(group);
      const signs = await Signs.before(rows);
      const seen = (async () => {
        await inAll(rows, 'make');
        await allOf([inAll(rows, 'kubectl', 'readyz', 'api', 'console'), signs.appear(), expectWarnings(rows)]);
        await expectHelm(rows);
      })();
      const mend = (): Promise<void> => inAll(rows, 'mend');
      await allOf([seen, seen.then(mend, mend)]);
      await signs.vanish();
    },
    1_500_000,
  );
});
