import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { z } from 'zod';
import { chartTools, manifests, template } from '../support/helm.ts';
import type { AlertCase } from './alert-case.ts';
import { alertCases } from './alert-cases.ts';

const ruleSchema = z.object({
  alert: z.string(),
  expr: z.string(),
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()),
});
const rulesSchema = z.object({ groups: z.array(z.object({ name: z.string(), rules: z.array(ruleSchema) })) });
const dashboardSchema = z.object({
  panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })) })),
});

let folder: string;
let rules: z.output<typeof rulesSchema>;
let panels: z.output<typeof dashboardSchema>['panels'];
/** What promtool writes about the file of each case, and all its complaints. */
let outcomes: Map<string, string>;
let complaints: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'posthorn-alerts-'));
  const flags = ['prometheusRule', 'dashboard'].flatMap((name) => ['--set', `monitoring.${name}.enabled=true`]);
  const objects = manifests(await template(...flags, '--show-only', 'templates/monitoring.yaml'));
  const one = (kind: string) => objects.find((object) => object.kind === kind);
  rules = rulesSchema.parse(one('PrometheusRule')?.['spec']);
  const { data } = z.looseObject({ data: z.record(z.string(), z.string()) }).parse(one('ConfigMap'));
  panels = dashboardSchema.parse(JSON.parse(data['posthorn.json'] ?? '')).panels;
  write('rules.yaml', rules);
  for (const [i, each] of alertCases.entries()) write(fileOf(i), unitTest(each));
  const { stdout, stderr } = await promtoolOutput('test', 'rules', ...alertCases.map((_, i) => fileOf(i)));
  const sections = stdout.split(/^Unit Testing: +/m).slice(1);
  outcomes = new Map(sections.map((section) => [section.slice(0, section.indexOf('\n')), section]));
  complaints = stderr;
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true }));

/** JSON is YAML, too. */
function write(name: string, content: object): void {
  writeFileSync(join(folder, name), JSON.stringify(content));
}

interface Output {
  stdout: string;
  stderr: string;
}

async function promtoolOutput(...args: string[]): Promise<Output> {
  return promisify(execFile)(join(chartTools, 'bin/promtool'), args, { cwd: folder }).catch((error: Output) => error);
}

async function promtool(...args: string[]): Promise<string> {
  const { stdout, stderr } = await promtoolOutput(...args);
  return `${stdout}${stderr}`;
}

const fileOf = (index: number): string => `case-${index}.yaml`;

/** As by Prometheus: the values of a rule's templates, one after the other. */
function annotationsOf({ annotations }: z.output<typeof ruleSchema>, values: readonly string[]): Record<string, string> {
  const rest = [...values];
  const said = (text: string): string => text.replace(/\{\{.*?\}\}/g, () => rest.shift() ?? '?');
  return {
    summary: said(annotations['summary'] ?? ''),
    description: said(annotations['description'] ?? ''),
    runbook_url: annotations['runbook_url'] ?? '',
  };
}

function expectedOf({ alert, fires }: AlertCase): object[] {
  const rule = rules.groups.flatMap((group) => group.rules).find((each) => each.alert === alert);
  if (rule === undefined) throw new Error(`there is no alert ${alert}`);
  return fires.map(({ labels, says }) => ({ exp_labels: { ...rule.labels, ...labels }, exp_annotations: annotationsOf(rule, says) }));
}

test('promtool takes the rules', async () => {
  expect(await promtool('check', 'rules', 'rules.yaml')).toContain(`SUCCESS: ${rules.groups[0]?.rules.length} rules found`);
});

test('promtool takes every query of the dashboard', async () => {
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const named = queries.map((expr, i) => ({
    record: `panel:query:${i}`,
    expr: expr.replaceAll('$namespace', 'posthorn-system').replaceAll('$__rate_interval', '2m'),
  }));
  write('dashboard.yaml', { groups: [{ name: 'dashboard', rules: named }] });
  expect(JSON.stringify(named)).not.toContain('$');
  expect(await promtool('check', 'rules', 'dashboard.yaml')).toContain(`SUCCESS: ${queries.length} rules found`);
});

function unitTest(each: AlertCase): object {
  const namespaced = Object.entries(each.series).map(([series, values]) => ({
    series: series.replace('{', '{namespace="posthorn-system",'),
    values,
  }));
  return {
    rule_files: ['rules.yaml'],
    evaluation_interval: '30s',
    tests: [
      {
        name: each.when,
        interval: '30s',
        input_series: namespaced,
        alert_rule_test: [{ alertname: each.alert, eval_time: each.at, exp_alerts: expectedOf(each) }],
      },
    ],
  };
}

test.each(alertCases.map(({ alert, fires, when }, i) => [alert, fires.length > 0 ? 'fires' : 'is silent', when, fileOf(i)]))(
  '%s %s when %s',
  (_alert, _outcome, _when, file) => {
    expect(`${outcomes.get(file)}${complaints}`).toContain('SUCCESS');
  },
);

test('every alert leads to a section of its own in the runbook, at the address that the values give', async () => {
  const page = readFileSync(new URL('../../docs/runbook.md', import.meta.url), 'utf8');
  const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^-\w ]/g, '')
      .replaceAll(' ', '-'),
  );
  const all = rules.groups.flatMap((group) => group.rules);
  for (const { alert, annotations } of all) {
    expect(annotations['runbook_url']).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
    expect(anchors.filter((anchor) => anchor === alert.toLowerCase())).toHaveLength(1);
  }
  const alerts = new Set(all.map(({ alert }) => alert.toLowerCase()));
  expect(anchors.filter((anchor) => anchor.startsWith('posthorn') && !alerts.has(anchor))).toEqual([]);
  const url = 'https://runbooks.example.com/posthorn';
  const set = `monitoring.prometheusRule.enabled=true,monitoring.prometheusRule.runbookUrl=${url}`;
  const text = await template('--set', set, '--show-only', 'templates/monitoring.yaml');
  expect([...text.matchAll(/runbook_url: (\S+)/g)].map(([, each]) => each)).toEqual(
    all.map(({ alert }) => `${url}#${alert.toLowerCase()}`),
  );
});

test('every alert has been seen both firing and silent', () => {
  const seen = (isFiring: boolean): string[] => [
    ...new Set(alertCases.flatMap(({ alert, fires }) => (fires.length > 0 === isFiring ? [alert] : []))),
  ];
  const names = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert)).sort();
  expect(seen(true).sort()).toEqual(names);
  expect(seen(false).sort()).toEqual(names);
});
