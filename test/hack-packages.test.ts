import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { packageComplaints } from '../hack/package-rules.ts';
import { baseImageOfDockerfile, softwareBillOfMaterials } from '../hack/sbom.ts';
import { webPackages } from '../hack/web-packages.ts';

const npmrc = 'ignore-scripts=true\n';
const good = { version: '1.0.0', integrity: 'sha512-AAAA', license: 'MIT' };
const complaintsOf = (each: object, settings = npmrc): string[] =>
  packageComplaints({ packages: { '': {}, 'node_modules/some/node_modules/@scope/name': { ...good, ...each } } }, settings);
const found = 'node_modules/some/node_modules/@scope/name 1.0.0';

test.each([
  ['without an integrity', { integrity: undefined }, `${found} has no SHA-512 integrity`],
  ['with a weak integrity', { integrity: 'sha1-AAAA' }, `${found} has no SHA-512 integrity`],
  [
    'under a copyleft licence',
    { license: 'GPL-3.0-only' },
    `${found} has the licence GPL-3.0-only, which hack/package-rules.ts does not list`,
  ],
  ['without a licence', { license: undefined }, `${found} has the licence (none), which hack/package-rules.ts does not list`],
  [
    'of which a part is under a copyleft licence',
    { license: '(MIT AND GPL-3.0-only)' },
    `${found} has the licence (MIT AND GPL-3.0-only), which hack/package-rules.ts does not list`,
  ],
  [
    'with a licence expression that does not parse',
    { license: 'MIT garbage' },
    `${found} has the licence MIT garbage, which hack/package-rules.ts does not list`,
  ],
  [
    'in production under a licence for development',
    { license: 'CC-BY-4.0' },
    `${found} has the licence CC-BY-4.0, which hack/package-rules.ts does not list`,
  ],
  ['with an install script', { hasInstallScript: true }, `${found} has an install script, which hack/package-rules.ts does not list`],
  ['from a Git repository', { resolved: 'git+ssh://git@example.com/some.git' }, `${found} does not come from a registry`],
  ['for one processor', { cpu: ['x64'] }, `${found} is for some platforms only, but the image has the same packages on each`],
  ['that is a link', { link: true }, `${found} does not come from a registry`],
])('a package %s is refused', (_, each, complaint) => {
  expect(complaintsOf(each)).toContain(complaint);
});

test.each([
  { license: 'Apache-2.0' },
  { license: '(MIT OR GPL-3.0-only)' },
  { license: 'Apache-2.0 AND MIT' },
  { license: '(MIT AND ISC) OR GPL-3.0-only' },
  { license: 'CC-BY-4.0', dev: true },
  { os: ['linux'], dev: true },
])('a package with %j is taken', (each) => {
  expect(complaintsOf(each)).toEqual([]);
});

test('install scripts that may run are refused', () => {
  expect(complaintsOf({}, 'fund=false\n')).toEqual([expect.stringContaining('ignore-scripts=true')]);
});

test('the base image of the Dockerfile is named by its digest', () => {
  expect(baseImageOfDockerfile()).toMatch(/@sha256:[0-9a-f]{64}$/);
});

test('the bill of materials names each production package of the lock file, and each package in the console, once, with its hash and licence, and the base image', () => {
  const lock: { packages: Record<string, { version: string; dev?: boolean; devOptional?: boolean; optional?: boolean; peer?: boolean }> } =
    JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const inConsole = webPackages();
  const shipped = Object.entries(lock.packages).filter(
    ([path, each]) => path !== '' && (each.dev !== true || inConsole.has(path.slice(13))),
  );
  const bom = JSON.parse(softwareBillOfMaterials('docker.io/library/node:24@sha256:00ff'));
  const [image, ...packages] = bom.components;
  expect(image).toMatchObject({ type: 'container', name: 'docker.io/library/node:24', hashes: [{ alg: 'SHA-256', content: '00ff' }] });
  const expected = new Set(shipped.map(([path, each]) => `${path.slice(path.lastIndexOf('node_modules/') + 13)}@${each.version}`));
  expect(new Set(packages.map((each: { 'bom-ref': string }) => each['bom-ref'].replace(/\|.*/, '')))).toEqual(expected);
  for (const each of packages) expect(each).toMatchObject({ hashes: [{ alg: 'SHA-512' }], licenses: [expect.anything()] });
});

test('the same lock file gives the same bill of materials', () => {
  expect(softwareBillOfMaterials(undefined)).toBe(softwareBillOfMaterials(undefined));
});
