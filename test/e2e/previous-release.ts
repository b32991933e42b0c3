import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chart, helm, manifests } from '../support/helm.ts';
import { kubectl, kubectlApply } from './kubectl.ts';

const run = promisify(execFile);
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

/** Puts the previous release, its chart and its image, in place of what is installed, with these values: what is then in Redis is its own. Answers the image. */
export async function installPreviousRelease(values: string, ...settings: string[]): Promise<string> {
  const uninstalled = helm('uninstall', 'posthorn', ...inSystem, '--wait', '--timeout', '120s');
  const [{ stdout }] = await Promise.all([run(cluster, ['previous']), uninstalled]);
  const image = stdout.trim();
  const [, repository = '', tag = ''] = /^(.+):([^:]+)$/.exec(image) ?? [];
  const set = ['--set', `image.repository=${repository},image.tag=${tag}`, ...settings];
  const [packaged = 'no chart of the previous release'] = globSync(`${kept}*.tgz`);
  await withValues(values, (file) => helm('install', 'posthorn', packaged, ...inSystem, '--values', file, ...set, ...patiently));
  await poolIsReady();
  return image;
}

/** Puts this release in place of whatever is there, be it nothing or half an upgrade, with these values. */
export async function installThisRelease(values: string): Promise<void> {
  await withValues(values, (file) =>
    helm('upgrade', '--install', 'posthorn', chart, ...inSystem, '--reset-then-reuse-values', '--values', file, ...patiently),
  );
  await poolIsReady();
}

async function poolIsReady(): Promise<void> {
  await kubectl(['wait', '--for=create', 'deliverypool/default', ...inSystem, '--timeout=60s']);
  await kubectl(['wait', '--for=condition=Ready', 'deliverypool/default', ...inSystem, '--timeout=120s']);
}

async function withValues(values: string, use: (file: string) => Promise<unknown>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-values-'));
  try {
    const file = join(directory, 'values.yaml');
    writeFileSync(file, values);
    await use(file);
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
