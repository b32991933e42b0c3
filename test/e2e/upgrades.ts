import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { deployedChart, helm, manifests, version } from '../support/helm.ts';
import { kubectl, kubectlApply } from './kubectl.ts';

const run = promisify(execFile);
const inSystem = ['--namespace', 'posthorn-system'];
const samples = new URL('../../config/samples/', import.meta.url).pathname;
/** Namespace of the organization of the samples. */
const namespace = 'acme';
const cluster = new URL('../../hack/cluster', import.meta.url).pathname;
const repository = 'localhost/posthorn';

/** Tags of one build: the version, as hack/cluster deploys it, and another one. An upgrade from one to the other replaces every pod. */
const tags = { deployed: version, other: `${version}-b` };
export type Tag = keyof typeof tags;

export function imageWith(tag: Tag): string {
  return `${repository}:${tags[tag]}`;
}

/** Gives the deployed image its other tag on the nodes, too. */
export async function addOtherTag(): Promise<void> {
  await run(cluster, ['rename', imageWith('deployed'), imageWith('other')]);
}

export function valuesOfInstallation(): Promise<string> {
  return helm('get', 'values', 'posthorn', ...inSystem, '--output', 'yaml');
}

/** How far ingest has taken over from the API pods. */
export type ApiIngest = 'Routed' | 'Served' | 'Off';

/** `values`: those of the installation. */
export async function upgradeTo(tag: Tag, apiIngest: ApiIngest, values: string, ...settings: string[]): Promise<void> {
  const set = ['--set', `image.tag=${tags[tag]},api.ingest=${apiIngest}`, ...settings, '--wait', '--timeout', '300s'];
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-values-'));
  try {
    const file = join(directory, 'values.yaml');
    writeFileSync(file, values);
    await helm('upgrade', '--install', 'posthorn', deployedChart(), ...inSystem, '--reset-then-reuse-values', '--values', file, ...set);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Goes back to the revision before the last upgrade. */
export async function rollBack(): Promise<void> {
  await helm('rollback', 'posthorn', ...inSystem, '--wait', '--timeout', '300s');
}

/** Applies the samples, which have every kind, but for the pool, which would replace the chart's own. */
export async function applySamples(): Promise<void> {
  const all = globSync('*.yaml', { cwd: samples }).flatMap((file) => manifests(readFileSync(join(samples, file), 'utf8')));
  const resources = all.filter(({ kind }) => kind !== 'DeliveryPool');
  await kubectlApply(resources.filter(({ kind }) => kind === 'Organization'));
  await kubectl(['wait', '--for=create', `namespace/${namespace}`, '--timeout=120s']);
  await kubectlApply(resources);
  await samplesAreReady();
}

export async function samplesAreReady(): Promise<void> {
  const names = (await kubectl(['get', 'posthorn', '-n', namespace, '-o', 'name'])).split('\n');
  // Organizations are in no namespace: all are listed.
  const held = names.filter((name) => name !== '' && !name.startsWith('organization.'));
  await kubectl(['wait', '-n', namespace, '--for=condition=Ready', `organization/${namespace}`, ...held, '--timeout=120s']);
}

export async function removeSamples(): Promise<void> {
  await kubectl(['delete', 'organization', namespace, '--ignore-not-found', '--wait=true', '--timeout=120s']);
  await kubectl(['delete', 'namespace', namespace, '--ignore-not-found', '--wait=true', '--timeout=120s']);
}
