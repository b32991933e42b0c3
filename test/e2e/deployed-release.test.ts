import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { eventually } from '../support/eventually.ts';
import { deployedChart, deployedRelease, helm, version } from '../support/helm.ts';
import { hasCluster } from '../support/in-cluster.ts';
import { components } from './installation-state.ts';
import { inSystem, patienceMs, system } from './system-commands.ts';

const run = promisify(execFile);
const podList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()) }),
      status: z.object({ containerStatuses: z.array(z.object({ imageID: z.string() })) }),
    }),
  ),
});
const index = z.object({ manifests: z.tuple([z.object({ digest: z.string() })]) });
const helmList = z.array(z.object({ name: z.string(), chart: z.string(), app_version: z.string() }));

const describeRelease = hasCluster && deployedRelease() !== undefined ? describe : describe.skip;

describeRelease('the installation of hack/cluster', () => {
  const release = deployedRelease() ?? '';
  const digestFile = `posthorn-${version}.image.digest`;

  test('runs in every pod the image whose digest is in the checksums and in the index of the release', async () => {
    await run('sha256sum', ['--strict', '--quiet', '--check', 'SHA256SUMS'], { cwd: release });
    expect(readFileSync(join(release, 'SHA256SUMS'), 'utf8')).toContain(`  ${digestFile}\n`);
    const digest = readFileSync(join(release, digestFile), 'utf8').trim();
    const { stdout } = await run('tar', ['-xOf', join(release, `posthorn-${version}.image.tar`), 'index.json']);
    expect(index.parse(JSON.parse(stdout)).manifests[0].digest).toBe(digest);

    const selector = `app.kubernetes.io/name=posthorn,app.kubernetes.io/component in (${components.join()})`;
    // A pod that begins or ends has no image for a moment, or that of before.
    await eventually(async () => {
      const { items } = podList.parse(JSON.parse(await inSystem('get', 'pods', '-l', selector, '-o', 'json')));
      expect(new Set(items.map(({ metadata }) => metadata.labels['app.kubernetes.io/component']))).toEqual(new Set(components));
      const images = items.flatMap(({ status }) => status.containerStatuses.map(({ imageID }) => imageID));
      expect(new Set(images)).toEqual(new Set([`localhost/posthorn@${digest}`]));
    }, patienceMs);
  }, 300_000);

  test('is of the chart of the release, and chart, image and program have one version', async () => {
    const releases = helmList.parse(JSON.parse(await helm('list', '--namespace', system, '--output', 'json')));
    expect(releases).toEqual([{ name: 'posthorn', chart: `posthorn-${version}`, app_version: version }]);
    const values = await helm('get', 'values', 'posthorn', '--namespace', system, '--output', 'json');
    expect(JSON.parse(values).image.repository).toBe('localhost/posthorn');
    const image = ['deployment/posthorn-api', '-o', 'jsonpath={.spec.template.spec.containers[0].image}'];
    expect(await inSystem('get', ...image)).toBe(`localhost/posthorn:${version}`);
    const program = ['--', 'node', '/app/dist/cmd/posthorn.js', '--version'];
    expect(await inSystem('exec', 'deployment/posthorn-api', ...program)).toContain(version);
    // What Helm keeps of an installation has the templates that it was made with.
    const sizes = '{{range .Release.Chart.Templates}}{{.Name}} {{len .Data}}{{"\\n"}}{{end}}';
    const kept = await helm('get', 'all', 'posthorn', '--namespace', system, '--template', sizes);
    const { stdout: packed } = await run('tar', ['-tvzf', deployedChart(), '--wildcards', 'posthorn/templates/*']);
    const templates = [...packed.matchAll(/ (\d+) \S+ \S+ posthorn\/(.+)$/gm)].map(([, size, name]) => `${name} ${size}`);
    expect(kept.trim().split('\n').sort()).toEqual(templates.sort());
  });
});
