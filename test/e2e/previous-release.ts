import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { chart, helm, manifests } from '../support/helm.ts';
import { kubectl, kubectlApply } from './kubectl.ts';

const run = promisify(execFile);
const record = z.record(z.string(), z.unknown());
const inSystem = ['--namespace', 'posthorn-system'];
const patiently = ['--wait', '--timeout', '180s'];
const kept = new URL('../chart/previous/', import.meta.url).pathname;
/** Of the organization in its resources. */
const namespace = 'acme';
const cluster = new URL('../../hack/cluster', import.meta.url).pathname;

/** Of what is installed. */
export function valuesOfInstallation(): Promise<string> {
  return helm('get', 'values', 'posthorn', ...inSystem, '--output', 'yaml');
}

/** Puts the previous release, its chart and its image, in place of what is installed, with these values: what is then in Redis is its own. Returns the image. */
export async function installPreviousRelease(values: string, ...settings: string[]): Promise<string> {
  const uninstalled = helm('uninstall', 'posthorn', ...inSystem, '--wait', '--timeout', '120s');
  const [{ stdout }] = await Promise.all([run(cluster, ['previous']), uninstalled]);
  const image = stdout.trim();
  const [, repository = '', tag = ''] = /^(.+):([^:]+)$/.exec(image) ?? [];
  const set = ['--set', `image.repository=${repository},image.tag=${tag}`, ...settings];
  const [packaged = 'no chart of the previous release'] = globSync(`${kept}*.tgz`);
  await withValues(await knownTo(packaged, values), (file) =>
    helm('install', 'posthorn', packaged, ...inSystem, '--values', file, ...set, ...patiently),
  );
  await poolIsReady();
  return image;
}

/** How far ingest has taken over from the API pods, which take the events in the previous release. */
export type ApiIngest = 'Routed' | 'Served' | 'Off';

/** Upgrades to this release, or changes what it is given. `values`: those of the installation. */
export function upgradeToThisRelease(values: string, apiIngest: ApiIngest, ...settings: string[]): Promise<string> {
  const set = ['--set', `api.ingest=${apiIngest}`, ...settings, ...patiently];
  return withValues(values, (file) =>
    helm('upgrade', '--install', 'posthorn', chart, ...inSystem, '--reset-then-reuse-values', '--values', file, ...set),
  );
}

/** Puts this release in place of whatever is there, be it nothing or half an upgrade, with these values. */
export async function installThisRelease(values: string): Promise<void> {
  for (const apiIngest of ['Routed', 'Off'] as const) await upgradeToThisRelease(values, apiIngest);
  await poolIsReady();
}

/** Those of these values that a chart has: it refuses others. */
async function knownTo(packaged: string, values: string): Promise<string> {
  return stringify(within(parse(await helm('show', 'values', packaged)), parse(values)));
}

/** What of these values has a default; below one that is an empty map anything has. */
function within(defaults: unknown, values: unknown): unknown {
  const [known, given] = [record.safeParse(defaults), record.safeParse(values)];
  if (!known.success || !given.success || Object.keys(known.data).length === 0) return values;
  const kept = Object.entries(given.data).filter(([name]) => name in known.data);
  return Object.fromEntries(kept.map(([name, value]) => [name, within(known.data[name], value)]));
}

async function poolIsReady(): Promise<void> {
  await kubectl(['wait', '--for=create', 'deliverypool/default', ...inSystem, '--timeout=60s']);
  await kubectl(['wait', '--for=condition=Ready', 'deliverypool/default', ...inSystem, '--timeout=120s']);
}

async function withValues(values: string, use: (file: string) => Promise<string>): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-values-'));
  try {
    const file = join(directory, 'values.yaml');
    writeFileSync(file, values);
    return await use(file);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Applies one resource of every kind as that release takes it, but for the pool, which would take the place of the chart's own. */
export async function applyResourcesOfPreviousRelease(): Promise<void> {
  const resources = manifests(readFileSync(`${kept}resources.yaml`, 'utf8')).filter(({ kind }) => kind !== 'DeliveryPool');
  await kubectlApply(resources.filter(({ kind }) => kind === 'Organization'));
  await kubectl(['wait', '--for=create', `namespace/${namespace}`, '--timeout=60s']);
  await kubectlApply(resources);
  await resourcesOfPreviousReleaseAreReady();
}

export async function resourcesOfPreviousReleaseAreReady(): Promise<void> {
  const names = (await kubectl(['get', 'posthorn', '-n', namespace, '-o', 'name'])).split('\n');
  // Organizations are in no namespace: all are listed.
  const held = names.filter((name) => name !== '' && !name.startsWith('organization.'));
  await kubectl(['wait', '-n', namespace, '--for=condition=Ready', `organization/${namespace}`, ...held, '--timeout=60s']);
}

export async function removeResourcesOfPreviousRelease(): Promise<void> {
  await kubectl(['delete', 'organization', namespace, '--ignore-not-found', '--wait=true', '--timeout=60s']);
}
