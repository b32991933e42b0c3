import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { chartTools, manifests, template } from '../support/helm.ts';
import { kubectl } from './kubectl.ts';

const system = 'posthorn-system';
const podList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional(), labels: z.record(z.string(), z.string()) }),
    }),
  ),
});
const components = ['api', 'ingest', 'controller', 'delivery'] as const;
type Component = (typeof components)[number];

/** One series of one pod with its value. */
export interface Sample {
  name: string;
  /** As Prometheus writes them, with `namespace` and `pod`. */
  labels: string;
  value: number;
}

async function podsOf(wanted: readonly Component[]): Promise<string[]> {
  const { items } = podList.parse(JSON.parse(await kubectl(['-n', system, 'get', 'pods', '-o', 'json'])));
  return items
    .filter(
      ({ metadata }) =>
        metadata.deletionTimestamp === undefined && wanted.some((each) => each === metadata.labels['app.kubernetes.io/component']),
    )
    .map(({ metadata }) => metadata.name);
}

/** What each pod of the component answers at the path of its port `ops`, whatever the status is. */
async function ops(pod: string, path: string): Promise<string> {
  try {
    return await kubectl(['get', '--raw', `/api/v1/namespaces/${system}/pods/${pod}:9090/proxy/${path}`]);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What `/readyz` of the pods of the components says. */
export async function readyz(...wanted: Component[]): Promise<string[]> {
  return Promise.all((await podsOf(wanted)).map((pod) => ops(pod, 'readyz')));
}

/** All series of Posthorn in all pods. */
export async function scrape(): Promise<Sample[]> {
  const pods = await podsOf(components);
  const texts = await Promise.all(pods.map((pod) => ops(pod, 'metrics')));
  return texts.flatMap((text, i) =>
    [...text.matchAll(/^(posthorn_\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value]) => ({
      name,
      labels: [`namespace="${system}"`, `pod="${pods[i]}"`, ...(labels === '' ? [] : [labels])].join(','),
      value: Number(value),
    })),
  );
}

/**
 * Alerts that fire when Prometheus goes on to scrape what is served now: gauges stay for two hours, and counters grow by as much in 30 seconds as between two scrapes.
 */
export async function firingAlerts(first: readonly Sample[], second: readonly Sample[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-alerts-'));
  try {
    const text = await template('--set', 'monitoring.prometheusRule.enabled=true', '--show-only', 'templates/monitoring.yaml');
    const rules = ruleSchema.parse(manifests(text).find(({ kind }) => kind === 'PrometheusRule')?.['spec']);
    const before = new Map(first.map(({ name, labels, value }) => [`${name}{${labels}}`, value]));
    const series = second
      .filter(({ value }) => Number.isFinite(value))
      .map(({ name, labels, value }) => {
        const key = `${name}{${labels}}`;
        const growth = name.endsWith('_total') ? value - (before.get(key) ?? 0) : 0;
        return { series: key, values: `${value}+${Math.max(0, growth)}x240` };
      });
    const names = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert));
    writeFileSync(join(folder, 'rules.yaml'), JSON.stringify(rules));
    const cases = names.map((alertname) => ({ alertname, eval_time: '110m', exp_alerts: [] }));
    const suite = {
      rule_files: ['rules.yaml'],
      evaluation_interval: '30s',
      tests: [{ interval: '30s', input_series: series, alert_rule_test: cases }],
    };
    writeFileSync(join(folder, 'case.yaml'), JSON.stringify(suite));
    const said = await promisify(execFile)(join(chartTools, 'bin/promtool'), ['test', 'rules', 'case.yaml'], {
      cwd: folder,
      maxBuffer: 64 * 1024 * 1024,
    }).then(
      ({ stdout, stderr }) => stdout + stderr,
      (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
    );
    if (!/SUCCESS|alertname:/.test(said)) throw new Error(said);
    return names.filter((name) => new RegExp(`alertname: ${name}\\b`).test(said));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const ruleSchema = z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(z.looseObject({ alert: z.string() })) })) });
