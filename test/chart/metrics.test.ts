import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { eventually } from '../support/eventually.ts';
import { chart } from '../support/helm.ts';
import { freePort } from '../support/ports.ts';
import { type Program, startProgram } from '../support/program.ts';

const alerts = parse(readFileSync(`${chart}files/alerts.yaml`, 'utf8')).groups[0].rules as { alert: string; expr: string }[];
const dashboard = JSON.parse(readFileSync(`${chart}files/dashboard.json`, 'utf8')) as {
  panels: { title: string; targets: { expr: string }[] }[];
};

let data: string;
let program: Program;
let metrics: string;
beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), 'posthorn-metrics-'));
  const [port, opsPort] = [await freePort(), await freePort()];
  const environment = { POSTHORN_DATA_DIR: data, POSTHORN_PORT: String(port), POSTHORN_OPS_PORT: String(opsPort) };
  mkdirSync(join(data, 'manifests'));
  program = startProgram(['standalone', '--manifests', join(data, 'manifests')], environment);
  await program.waitForOutput(/posthorn ready/);
  // A process that is too slow is left out.
  metrics = await eventually(async () => {
    const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
    for (const name of ['standalone', 'controller', 'api', 'ingest', 'delivery']) expect(text).toContain(`process="${name}`);
    return text;
  });
});
afterAll(async () => {
  await program.stop();
  rmSync(data, { recursive: true });
});

/** The metrics that an expression names, without what a histogram adds. */
function namesIn(expression: string): string[] {
  return [...expression.matchAll(/\b(posthorn|nodejs)_[a-z0-9_]+/g)].map(([name]) => name.replace(/_(bucket|count|sum)$/, ''));
}

const panels = dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const));

test.each([...alerts.map(({ alert, expr }) => [alert, expr] as const), ...panels])('%s uses metrics that exist: %s', (_, expression) => {
  const names = namesIn(expression);
  expect(names).not.toEqual([]);
  for (const name of names) expect(metrics).toContain(`# TYPE ${name} `);
});

/** Counters in an expression: the name, and the label by which it chooses with each of its values. */
function countersIn(expression: string): [name: string, label: string, value: string][] {
  return [...expression.matchAll(/\b(?:increase|rate)\((\w+)\{[^}]*?,(\w+)=~?"([^"]+)"/g)].flatMap(
    ([, name = '', label = '', values = '']) => values.split('|').map((value): [string, string, string] => [name, label, value]),
  );
}

test.each(alerts.flatMap(({ alert, expr }) => countersIn(expr).map((counter) => [alert, ...counter] as const)))(
  '%s sees the first increase of %s: it begins at 0 where %s is %s',
  (_, name, label, value) => {
    const samples = metrics.split('\n').filter((line) => line.startsWith(`${name}{`) && line.includes(`${label}="${value}"`));
    expect(samples).not.toEqual([]);
  },
);

test('docs/metrics.md lists exactly the metrics that the processes show', () => {
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const documented = [...page.matchAll(/^\| `(\w+)` \| (?:counter|gauge|histogram) /gm)].map(([, name]) => name);
  const shown = [...metrics.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name);
  expect(documented.toSorted()).toEqual(shown.toSorted());
});

test.each([
  ['posthorn_reconcile_total', 'kind', 'result'],
  ['posthorn_reflector_healthy', 'kind'],
  ['posthorn_queue_messages', 'state'],
])('%s has the labels %s %s', (name, ...labels) => {
  const sample = metrics.split('\n').find((line) => line.startsWith(`${name}{`));
  for (const label of labels) expect(sample).toMatch(new RegExp(`[{,]${label}="`));
});
