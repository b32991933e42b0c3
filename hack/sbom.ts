// The software bill of materials of the program, as CycloneDX JSON. It lists the packages that package-lock.json installs for production, the packages
// that are bundled into the console and, where it is known, the base image. The same lock file gives the same text: no time, no random serial number.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { webPackages } from './web-packages.ts';

interface Bom {
  serialNumber?: string;
  metadata: { timestamp?: string; tools?: unknown; component: Record<string, unknown> };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

interface Component {
  'bom-ref': string;
  [member: string]: unknown;
  properties?: { name: string; value: string }[];
}

/** Returns the document as text. `baseImage`: a reference with a digest, `name:tag@sha256:…`. Throws when npm cannot read the lock file. */
export function softwareBillOfMaterials(baseImage: string | undefined): string {
  // Not --omit=dev: with it npm leaves out a production package that a development package needs, too. NODE_ENV=production, which Vite sets, means the same.
  const { NODE_ENV: _, ...env } = process.env;
  const npm = spawnSync('npm', ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'], {
    encoding: 'utf8',
    env,
    maxBuffer: 64 * 1024 * 1024,
    timeout: 120_000,
  });
  if (npm.status !== 0) throw new Error(`npm sbom failed: ${npm.stderr}`);
  const bom: Bom = JSON.parse(npm.stdout);
  delete bom.metadata.timestamp;
  delete bom.metadata.tools;
  // npm names the component after its directory.
  bom.metadata.component['name'] = 'posthorn';
  bom.serialNumber = serialNumber(readFileSync('package-lock.json'), baseImage ?? '');
  const inConsole = webPackages();
  const shipped = bom.components.map((each) => (inConsole.has(nameOf(each)) ? asPartOfConsole(each) : each));
  bom.components = shipped.filter((each) => !isForDevelopment(each)).sort((a, b) => compareText(a['bom-ref'], b['bom-ref']));
  const known = new Set([...bom.components.map((each) => each['bom-ref']), String(bom.metadata.component['bom-ref'])]);
  bom.dependencies = bom.dependencies
    .filter(({ ref }) => known.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => known.has(each)) }))
    .sort((a, b) => compareText(a.ref, b.ref));
  if (baseImage !== undefined) bom.components.unshift(imageComponent(baseImage));
  return `${JSON.stringify(bom, null, 1)}\n`;
}

/** The default of the base image in the Dockerfile. */
export function baseImageOfDockerfile(): string {
  const image = /^ARG BASE_IMAGE=(\S+)$/m.exec(readFileSync('Dockerfile', 'utf8'))?.[1];
  if (image === undefined) throw new Error('the Dockerfile has no line ARG BASE_IMAGE=…');
  return image;
}

function isForDevelopment({ properties = [] }: Component): boolean {
  return properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true');
}

function nameOf({ 'bom-ref': reference }: Component): string {
  return reference.slice(0, reference.lastIndexOf('@'));
}

/** Its code is in dist/web/, though npm does not install it for production. */
function asPartOfConsole({ properties = [], scope: _, ...component }: Component): Component {
  const others = properties.filter(({ name }) => name !== 'cdx:npm:package:development');
  return { ...component, properties: [...others, { name: 'posthorn:bundled-in', value: 'console' }] };
}

function imageComponent(reference: string): Component {
  const [name = '', digest] = reference.split('@');
  const component = { 'bom-ref': reference, type: 'container', name };
  if (digest === undefined) return component;
  return { ...component, version: digest, hashes: [{ alg: 'SHA-256', content: digest.replace('sha256:', '') }] };
}

/** A UUID of version 8 (RFC 9562) that follows from what the document describes. */
function serialNumber(lockFile: Buffer, baseImage: string): string {
  const bytes = createHash('sha256').update(lockFile).update(baseImage).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
