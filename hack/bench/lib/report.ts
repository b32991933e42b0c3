import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
}

export const ms = (value: number): string => `${value.toFixed(1)} ms`;
export const perSecond = (value: number): string => `${value.toFixed(0)}/s`;

/** Prints the table and keeps the figures with what they were measured on in docs/benchmarks; `name` null: only prints. */
export function report(name: string | null, title: string, rows: readonly (readonly [string, string])[]): void {
  console.log(`| ${title} | |\n|---|---|`);
  for (const [what, figure] of rows) console.log(`| ${what} | ${figure} |`);
  if (name === null) return;
  const folder = new URL('../../../docs/benchmarks/', import.meta.url);
  mkdirSync(folder, { recursive: true });
  const machine = {
    at: new Date().toISOString(),
    node: process.version,
    redis: /v=(\S+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1],
    kernel: release(),
    cores: cpus().length,
    cpu: cpus()[0]?.model,
  };
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify({ title, ...machine, figures: Object.fromEntries(rows) }, null, 2)}\n`);
}
