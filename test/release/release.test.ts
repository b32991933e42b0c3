import { execFile, spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { chart, helm, manifests } from '../support/helm.ts';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url).pathname;
const version: string = JSON.parse(readFileSync(`${root}package.json`, 'utf8')).version;
/** By architecture, the machine that an ELF file is for. */
const machines = { amd64: 0x3e, arm64: 0xb7 };
/** Time of all files, in seconds. */
const epoch = 1_700_000_000;
const work = mkdtempSync(join(tmpdir(), 'posthorn-release-test-'));
const { privateKey, publicKey } = generateKeyPairSync('ec', {
  namedCurve: 'prime256v1',
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
afterAll(() => rmSync(work, { recursive: true }));

const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('hack/release', () => {
  const tree = join(work, 'tree');
  const git = (...args: string[]) => run('git', ['-C', tree, '-c', 'user.name=a', '-c', 'user.email=a@a.example', ...args]);
  /** Its message when it refuses. */
  async function refusal(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<string> {
    const made = run(join(tree, 'hack/release'), args, { env: { ...process.env, RELEASE_KEY: '', ...environment } });
    return await made.then(
      () => 'it made a release',
      ({ stderr }) => String(stderr),
    );
  }

  beforeAll(async () => {
    mkdirSync(tree);
    for (const name of ['hack', 'charts', 'package.json', 'package-lock.json', 'CHANGELOG.md', 'Dockerfile'])
      cpSync(join(root, name), join(tree, name), { recursive: true });
    await git('init', '--quiet');
    await git('add', '.');
    await git('commit', '--quiet', '--message', 'All');
  });

  test.each([
    ['package.json', '"version": ', 'package.json'],
    ['package-lock.json', '"version": ', 'package-lock.json'],
    ['charts/posthorn/Chart.yaml', 'version: ', 'version of charts/posthorn/Chart.yaml'],
    ['charts/posthorn/Chart.yaml', 'appVersion: ', 'appVersion of charts/posthorn/Chart.yaml'],
  ])('refuses a version when another one is in %s behind %s', async (file, before, what) => {
    const text = readFileSync(join(tree, file), 'utf8');
    writeFileSync(join(tree, file), text.replace(new RegExp(`^( *${before}"?)[0-9.]+`, 'm'), '$19.9.9'));
    expect(await refusal([version])).toContain(`not everything has the version ${version}: ${what} has 9.9.9\n`);
    writeFileSync(join(tree, file), text);
  });

  test('refuses a version that nothing has, and what is no version', async () => {
    expect(await refusal(['9.9.9'])).toMatch(/package\.json has .*; package-lock\.json has .*; CHANGELOG\.md has no such heading/);
    expect(await refusal([`v${version}`])).toContain('is not a version');
  });

  test('refuses a tree with changes, a directory that is there, and a release without a key', async () => {
    appendFileSync(join(tree, 'CHANGELOG.md'), 'More.\n');
    expect(await refusal([version])).toContain('changes that are not committed');
    await git('checkout', '--quiet', 'CHANGELOG.md');
    expect(await refusal([version, tree])).toContain('is there already');
    expect(await refusal([version])).toContain('needs a key to sign with');
    expect(await refusal([version], { RELEASE_KEY: publicKey })).toContain('the key cannot sign');
  });

  test('refuses a tree without a commit, unless changes are allowed', async () => {
    renameSync(join(tree, '.git'), join(work, 'git'));
    try {
      expect(await refusal(['--unsigned', version])).toContain('needs a git work tree with a commit');
      const platform = ['--platform', 'linux/s390x'];
      expect(await refusal(['--unsigned', '--allow-dirty', ...platform, version])).toContain('linux/s390x is not a platform of the image');
    } finally {
      renameSync(join(work, 'git'), join(tree, '.git'));
    }
  });

  test('refuses a platform that the image does not have', async () => {
    expect(await refusal(['--unsigned', '--platform', 'linux/s390x', version])).toContain('linux/s390x is not a platform of the image');
  });
});

describe('a release', () => {
  const release = join(work, 'release');
  const name = (suffix: string): string => join(release, `posthorn-${version}${suffix}`);

  beforeAll(async () => {
    // Without an engine no registry of images is contacted.
    const base = spawnSync('docker', ['info']).status === 0 ? [] : ['--local-base'];
    const args = [...base, '--allow-dirty', version, release];
    await run(`${root}hack/release`, args, { env: { ...process.env, RELEASE_KEY: privateKey, SOURCE_DATE_EPOCH: String(epoch) } });
    writeFileSync(join(work, 'release.pub'), publicKey);
  }, 900_000);

  /** Whether the command of docs/releases.md takes the directory. */
  function isVerified(): boolean {
    const [, command = ''] = /```console\n\$ (openssl dgst .*)\n/.exec(readFileSync(`${root}docs/releases.md`, 'utf8')) ?? [];
    expect(command).toContain('SHA256SUMS');
    return spawnSync('bash', ['-c', command], { cwd: release, env: { ...process.env, key: join(work, 'release.pub') } }).status === 0;
  }

  test('a release has the files that the page of releases names, and each has a checksum', () => {
    const names = readdirSync(release);
    const page = readFileSync(`${root}docs/releases.md`, 'utf8');
    expect(names.sort()).toEqual(
      [...page.matchAll(/^\| `(posthorn-VERSION\S*|SHA256SUMS\S*)` \|/gm)].map(([, file = '']) => file.replace('VERSION', version)).sort(),
    );
    const sums = readFileSync(join(release, 'SHA256SUMS'), 'utf8').trim().split('\n');
    expect(sums.map((line) => line.split('  ')[1]).sort()).toEqual(names.filter((each) => !each.startsWith('SHA256SUMS')).sort());
  });

  test('a release is verified by one command, which refuses a changed file, changed checksums and the key of another', () => {
    expect(isVerified()).toBe(true);
    for (const file of [name('.tgz'), join(release, 'SHA256SUMS')]) {
      const bytes = readFileSync(file);
      appendFileSync(file, ' ');
      expect([file, isVerified()]).toEqual([file, false]);
      writeFileSync(file, bytes);
    }
    const other = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).publicKey.export({ type: 'spki', format: 'pem' });
    writeFileSync(join(work, 'release.pub'), other);
    expect(isVerified()).toBe(false);
    writeFileSync(join(work, 'release.pub'), publicKey);
    expect(isVerified()).toBe(true);
  });

  test('a release has a chart of that version, which makes the objects of the chart in the tree and names the image by the version', async () => {
    expect(await helm('show', 'chart', name('.tgz'))).toMatch(new RegExp(`^appVersion: ${version}$[^]*^version: ${version}$`, 'm'));
    const values = `${root}test/chart/values/production.yaml`;
    const rendered = (path: string) => helm('template', 'posthorn', path, '--namespace', 'posthorn-system', '--values', values);
    const text = await rendered(name('.tgz'));
    expect(text).toEqual(await rendered(chart));
    const plain = await helm('template', 'posthorn', name('.tgz'), '--namespace', 'posthorn-system');
    expect(plain).toContain(`image: "posthorn/posthorn:${version}"`);
    expect(manifests(plain).length).toBeGreaterThan(20);
  });

  /** Times in the archive, each once. Those of entries that depend on the machine or the moment would differ from release to release. */
  async function timesIn(archive: string): Promise<string[]> {
    const options = { env: { ...process.env, TZ: 'UTC' }, maxBuffer: 64 * 1024 * 1024 };
    const { stdout } = await run('tar', ['--full-time', '-tvf', archive], options);
    return [...new Set([...stdout.matchAll(/ (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)/g)].map(([, time = '']) => time))];
  }
  const time = new Date(epoch * 1000).toISOString().slice(0, 19).replace('T', ' ');

  test('a release has one time in all of its archives, so that the next release of the same commit has the same bytes', async () => {
    for (const suffix of ['.tgz', '.schemas.tar.gz', '.image.tar']) expect([suffix, await timesIn(name(suffix))]).toEqual([suffix, [time]]);
  });

  describe('its image', () => {
    const layout = join(work, 'layout');
    const blob = (digest: string): Buffer => readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
    // biome-ignore lint/suspicious/noExplicitAny: documents of OCI
    const json = (digest: string): any => JSON.parse(blob(digest).toString());

    beforeAll(async () => {
      mkdirSync(layout);
      await run('tar', ['-xf', name('.image.tar'), '-C', layout]);
    });

    test('is an OCI layout, whose every blob has its digest, with an index of the platforms', () => {
      expect(JSON.parse(readFileSync(join(layout, 'oci-layout'), 'utf8'))).toEqual({ imageLayoutVersion: '1.0.0' });
      const [top, ...more] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests;
      expect(more).toEqual([]);
      expect(top).toMatchObject({
        mediaType: 'application/vnd.oci.image.index.v1+json',
        digest: readFileSync(name('.image.digest'), 'utf8').trim(),
        annotations: { 'org.opencontainers.image.ref.name': version },
      });
      const platforms = Object.keys(machines).map((architecture) => ({ platform: { os: 'linux', architecture } }));
      expect(json(top.digest).manifests).toMatchObject(platforms);
      for (const hash of readdirSync(join(layout, 'blobs/sha256'))) expect(digestOf(blob(`sha256:${hash}`))).toBe(hash);
    });

    test('has the same program for each platform, on a base image whose Node is for that platform', async () => {
      const [top] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests;
      const programs = new Set<string>();
      for (const { digest, platform } of json(top.digest).manifests) {
        const { config, layers } = json(digest);
        expect(json(config.digest)).toMatchObject(platform);
        programs.add(layers.at(-1).digest);
        const base = join(work, platform.architecture);
        mkdirSync(base);
        for (const layer of layers) {
          const archive = join(layout, 'blobs', layer.digest.replace(':', '/'));
          const { stdout } = await run('tar', ['-tzf', archive], { maxBuffer: 64 * 1024 * 1024 });
          const [, path] = /^((?:\.\/)?usr\/local\/bin\/node)$/m.exec(stdout) ?? [];
          if (path !== undefined) await run('tar', ['-xzf', archive, '-C', base, path]);
        }
        const header = Buffer.alloc(20);
        const node = openSync(join(base, 'usr/local/bin/node'), 'r');
        readSync(node, header, 0, header.length, 0);
        closeSync(node);
        expect([platform.architecture, header.readUInt16LE(18)]).toEqual([
          platform.architecture,
          machines[platform.architecture as keyof typeof machines],
        ]);
      }
      expect(programs.size).toBe(1);
    });

    test('has the program, runs it as another user than root, and has the bill of materials of the release', async () => {
      const [top] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests;
      const { config, layers } = json(json(top.digest).manifests[0].digest);
      const { config: settings, created, history = [] } = json(config.digest);
      expect(Date.parse(created)).toBe(epoch * 1000);
      expect(settings).toMatchObject({ User: '1000:1000', Labels: { 'org.opencontainers.image.version': version } });
      expect(settings.Entrypoint.at(-1)).toBe('/app/dist/cmd/posthorn.js');
      expect(history).toEqual([]);
      const last = join(layout, 'blobs', layers.at(-1).digest.replace(':', '/'));
      expect(await timesIn(last)).toEqual([time]);
      await run('tar', ['-xzf', last, '-C', work, 'app']);
      const { stdout } = await run(process.execPath, [join(work, 'app/dist/cmd/posthorn.js'), '--version']);
      expect(stdout.trim()).toContain(version);
      expect(readFileSync(join(work, 'app/dist/sbom.cdx.json'), 'utf8')).toBe(readFileSync(name('.sbom.cdx.json'), 'utf8'));
    });
  });

  test('a release has the schemas of all kinds', async () => {
    const { stdout } = await run('tar', ['-tzf', name('.schemas.tar.gz')]);
    expect(stdout.split('\n')).toEqual(expect.arrayContaining(['posthorn.dev/all.json', 'posthorn.dev/route_v1alpha1.json']));
  });
});
