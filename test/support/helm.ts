import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';

export const chart = new URL('../../charts/posthorn/', import.meta.url).pathname;
const packageOfTree = new URL('../../package.json', import.meta.url);
export const version = z.object({ version: z.string() }).parse(JSON.parse(readFileSync(packageOfTree, 'utf8'))).version;
/** Directory of the release that `hack/cluster deploy` has installed. There is none on a machine that cannot make one. */
export const deployedRelease = (): string | undefined => process.env['POSTHORN_E2E_RELEASE'] || undefined;
/** The chart that `hack/cluster deploy` has installed. */
export function deployedChart(): string {
  const release = deployedRelease();
  return release === undefined ? chart : join(release, `posthorn-${version}.tgz`);
}
/** Where `hack/test` has installed helm, kubeconform and schemas. */
export const chartTools =
  process.env['POSTHORN_CHART_TOOLS'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'posthorn/chart-tools');

const run = promisify(execFile);
const manifest = z.looseObject({ apiVersion: z.string(), kind: z.string(), metadata: z.looseObject({ name: z.string() }) });
export type Manifest = z.output<typeof manifest>;

/** Runs helm; returns its standard output. Rejects with its error. */
export async function helm(...args: string[]): Promise<string> {
  const { stdout } = await run(join(chartTools, 'bin/helm'), args, { maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** What `helm template` makes of the chart, as text. */
export async function template(...args: string[]): Promise<string> {
  return helm('template', 'posthorn', chart, '--namespace', 'posthorn-system', ...args);
}

export function manifests(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter((value) => value !== null)
    .map((value) => manifest.parse(value));
}
