import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { kubernetesAssets } from '../support/control-plane.ts';
import { type Manifest, manifests, template } from '../support/helm.ts';

const run = promisify(execFile);
const kustomize = new URL('../../config/kustomize/', import.meta.url).pathname;
let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-kustomize-'));
  cpSync(kustomize, directory, { recursive: true });
  for (const [file, text] of Object.entries({
    encryption: 'POSTHORN_ENCRYPTION_KEYS=k',
    'api-key': 'api-key=k',
    redis: 'POSTHORN_REDIS_URL=u',
  }))
    writeFileSync(join(directory, 'example', `${file}.env`), text);
});
afterAll(() => rmSync(directory, { recursive: true }));

async function built(name: string): Promise<Manifest[]> {
  const { stdout } = await run(join(kubernetesAssets(), 'kubectl'), ['kustomize', join(directory, name)]);
  return manifests(stdout);
}

const byId = (objects: Manifest[]): Map<string, Manifest> =>
  new Map(objects.map((object) => [`${object.kind} ${object.metadata.name}`, object]));

test('kustomize builds the objects that Helm renders; when not, run hack/kustomize', async () => {
  const rendered = await template('--values', join(kustomize, 'values.yaml'), '--no-hooks');
  expect(manifests(readFileSync(join(kustomize, 'base/posthorn.yaml'), 'utf8'))).toEqual(manifests(rendered));
  expect(byId(await built('base'))).toEqual(byId(manifests(rendered)));
});

test('an overlay with another namespace leaves no text of it in what the installation makes itself', async () => {
  const file = join(directory, 'example/kustomization.yaml');
  const overlay = readFileSync(file, 'utf8');
  writeFileSync(file, overlay.replace('namespace: posthorn-system', 'namespace: hooks'));
  const objects = await built('example').finally(() => writeFileSync(file, overlay));
  const naming = objects.filter((object) => JSON.stringify(object).includes('posthorn-system'));
  // The policies name it in their expressions.
  expect(naming.filter(({ kind }) => kind !== 'ValidatingAdmissionPolicy')).toEqual([]);
  expect(JSON.stringify(byId(objects).get('ConfigMap posthorn-bootstrap')?.['data'])).toContain('kind: DeliveryPool');
});

test('the overlay of the example makes the Secrets that pods refer to, and gives its image to the workers, too', async () => {
  const objects = await built('example');
  const text = JSON.stringify(objects);
  const referred = new Set(
    [...text.matchAll(/"secretKeyRef":\{[^}]*"name":"([^"]+)"|"secretName":"([^"]+)"/g)].map(([, key, file]) => key ?? file),
  );
  const made = objects.filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata.name);
  expect(made.sort()).toEqual([...referred].sort());
  expect(text).toContain('{"name":"POSTHORN_IMAGE","value":"registry.example.com/posthorn:0.2.0"}');
  expect(text).not.toContain('posthorn/posthorn:');
});
