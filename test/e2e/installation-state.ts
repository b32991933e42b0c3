import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { z } from 'zod';
import { chartTools, manifests, template } from '../support/helm.ts';
import { system } from './system-commands.ts';

const podList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional(), labels: z.record(z.string(), z.string()) }),
    }),
  ),
});
export const components = ['api', 'ingest', 'controller', 'delivery'] as const;
export type Component = (typeof components)[number];

/** One series of one pod with its value. */
export interface Sample {
  name: string;
  /** As Prometheus writes them, with `namespace` and `pod`. */
  labels: string;
  value: number;
}

/** Ports `ops` of pods, through one `kubectl proxy`. */
export class PodOps {
  readonly #url: string;
  readonly #proxy: ChildProcess;
  readonly #namespace: string;

  private constructor(url: string, proxy: ChildProcess, namespace: string) {
    this.#url = url;
    this.#proxy = proxy;
    this.#namespace = namespace;
  }

  /** `namespace`: that of the installation. */
  static async open(namespace = system): Promise<PodOps> {
    const proxy = spawn('kubectl', ['proxy', '--port=0'], { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface(proxy.stdout)) {
      const address = /127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (address !== undefined) return new PodOps(`http://${address}`, proxy, namespace);
    }
    throw new Error('kubectl proxy ended');
  }

  async close(): Promise<void> {
    const ended = once(this.#proxy, 'exit');
    this.#proxy.kill('SIGTERM');
    await ended;
  }

  /** The bodies of `/readyz` of the pods of the components. */
  async readyz(...wanted: Component[]): Promise<string[]> {
    return Promise.all((await this.#podsOf(wanted)).map((pod) => this.#read(pod, 'readyz')));
  }

  /** All series of Posthorn in all pods that answer. */
  async scrape(): Promise<Sample[]> {
    return this.#scrape((pod) => this.#read(pod, 'metrics'));
  }

  /** All series of Posthorn in all pods. Throws while one of them does not answer. */
  async scrapeAll(): Promise<Sample[]> {
    return this.#scrape(async (pod) => {
      const text = await this.#read(pod, 'metrics');
      if (!text.includes('posthorn_readiness')) throw new Error(`${pod} has no metrics: ${text.slice(0, 200)}`);
      return text;
    });
  }

  async #scrape(read: (pod: string) => Promise<string>): Promise<Sample[]> {
    const pods = await this.#podsOf(components);
    const texts = await Promise.all(pods.map(read));
    return texts.flatMap((text, i) =>
      [...text.matchAll(/^(posthorn_\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value]) => ({
        name,
        labels: [`namespace="${this.#namespace}"`, `pod="${pods[i]}"`, ...(labels === '' ? [] : [labels])].join(','),
        value: Number(value),
      })),
    );
  }

  async #podsOf(wanted: readonly Component[]): Promise<string[]> {
    const { items } = podList.parse(await (await fetch(`${this.#url}/api/v1/namespaces/${this.#namespace}/pods`)).json());
    return items
      .filter(
        ({ metadata }) =>
          metadata.deletionTimestamp === undefined && wanted.some((each) => each === metadata.labels['app.kubernetes.io/component']),
      )
      .map(({ metadata }) => metadata.name);
  }

  /** The body, whatever the status is. */
  async #read(pod: string, path: string): Promise<string> {
    const answer = await fetch(`${this.#url}/api/v1/namespaces/${this.#namespace}/pods/${pod}:9090/proxy/${path}`, {
      signal: AbortSignal.timeout(10_000),
    });
    return answer.text();
  }
}

/**
 * Alerts that fire when Prometheus continues to scrape what is served now: gauges stay for two hours, and counters grow by as much in 30 seconds as between two scrapes.
 */
export async function firingAlerts(first: readonly Sample[], second: readonly Sample[]): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-alerts-'));
  try {
    const rules = await alertRules();
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
    const output = await promisify(execFile)(join(chartTools, 'bin/promtool'), ['test', 'rules', 'case.yaml'], {
      cwd: folder,
      maxBuffer: 64 * 1024 * 1024,
    }).then(
      ({ stdout, stderr }) => stdout + stderr,
      (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
    );
    if (!/SUCCESS|alertname:/.test(output)) throw new Error(output);
    return names.filter((name) => new RegExp(`alertname: ${name}\\b`).test(output));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

let rulesOfChart: Promise<z.output<typeof ruleSchema>> | undefined;
function alertRules(): Promise<z.output<typeof ruleSchema>> {
  rulesOfChart ??= template('--set', 'monitoring.prometheusRule.enabled=true', '--show-only', 'templates/monitoring.yaml').then((text) =>
    ruleSchema.parse(manifests(text).find(({ kind }) => kind === 'PrometheusRule')?.['spec']),
  );
  return rulesOfChart;
}

const ruleSchema = z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(z.looseObject({ alert: z.string() })) })) });
