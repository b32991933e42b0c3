import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { kubernetesAssets } from './support/control-plane.ts';

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'posthorn-hack-cluster-'));
const state = join(directory, 'state');
const env = { ...process.env, CLUSTER_DIR: state };
const cluster = (command: string, own = {}): Promise<unknown> =>
  run('hack/cluster', [command], { env: { ...env, ...own }, timeout: 120_000 });
const numbers = (): number[] =>
  readdirSync(state)
    .filter((name) => name.endsWith('.pid'))
    .map((name) => Number(readFileSync(join(state, name), 'utf8')));

async function kubectl(...args: string[]): Promise<string> {
  const { stdout } = await run(join(kubernetesAssets(), 'kubectl'), ['--kubeconfig', join(state, 'kubeconfig'), ...args]);
  return stdout;
}

afterAll(async () => {
  await cluster('down');
  rmSync(directory, { recursive: true });
});

test('a cluster that was killed leaves nothing to the next one', async () => {
  await cluster('control-plane');
  await kubectl('create', 'namespace', 'of-the-first');
  await cluster('control-plane');
  expect(await kubectl('get', 'namespaces', '--output', 'name')).toContain('namespace/of-the-first');
  for (const pid of numbers()) process.kill(pid, 'SIGKILL');
  await cluster('control-plane');
  expect(await kubectl('get', 'namespaces', '--output', 'name')).not.toContain('namespace/of-the-first');
}, 240_000);

test('a directory that holds something else is left alone', async () => {
  const other = join(directory, 'other');
  mkdirSync(other);
  writeFileSync(join(other, 'thesis.txt'), 'years of work');
  for (const command of ['control-plane', 'down'])
    await expect(cluster(command, { CLUSTER_DIR: other })).rejects.toThrow('holds something else than a cluster');
  expect(existsSync(join(other, 'thesis.txt'))).toBe(true);
});
