import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';
import { isRecord } from '../../src/resources/field-tree.ts';
import { kinds, type PosthornKind, posthornKinds } from '../../src/resources/kinds.ts';
import { parseManifests } from '../../src/runtime/manifests/parse.ts';
import { type ControlPlane, kubernetesAssets, startControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';

const schemaOfKind = z.looseObject({ description: z.string().optional(), properties: z.record(z.string(), z.unknown()).optional() });
const schemaName = (kind: PosthornKind): string => `dev.posthorn.v1alpha1.${kind}`;

const here = new URL('.', import.meta.url).pathname;
const crdFiles = new URL('../../crds/', import.meta.url).pathname;

const published = z.object({ components: z.object({ schemas: z.record(z.string(), schemaOfKind) }) });

let plane: ControlPlane;
/** The document of the API server that kubectl explain shows; by kind. */
let schemas: Record<string, z.output<typeof schemaOfKind>>;
beforeAll(async () => {
  plane = await startControlPlane({ crds: true });
  schemas = await eventually('every kind to be in the document', 60_000, async () => {
    const found = published.parse(await plane.request('GET', '/openapi/v3/apis/posthorn.dev/v1alpha1')).components.schemas;
    return posthornKinds.every((kind) => schemaName(kind) in found) && found;
  });
}, 120_000);
afterAll(() => plane?.stop());

interface Field {
  /** In the form of kubectl explain: without marks for lists. */
  path: string;
  description: string;
}

/** Every field of a kind, at any depth. What Kubernetes describes itself is left out. */
function fieldsOf(kind: PosthornKind): Field[] {
  const crd = parse(readFileSync(join(crdFiles, `posthorn.dev_${kinds[kind].plural}.yaml`), 'utf8'));
  return fieldsIn(kind, schemaOfKind.parse(crd.spec.versions[0].schema.openAPIV3Schema));
}

function fieldsIn(kind: PosthornKind, { properties = {}, description = '' }: z.output<typeof schemaOfKind>): Field[] {
  const { plural } = kinds[kind];
  const { apiVersion: _, kind: __, metadata: ___, ...own } = properties;
  return [{ path: plural, description }, ...below(own, plural)];
}

function below(properties: unknown, path: string): Field[] {
  return Object.entries(isRecord(properties) ? properties : {}).flatMap(([name, node]) => {
    if (!isRecord(node)) return [];
    const inner = [node, node['items'], node['additionalProperties']].find((each) => isRecord(each) && isRecord(each['properties']));
    const fields = isRecord(inner) ? below(inner['properties'], `${path}.${name}`) : [];
    return [{ path: `${path}.${name}`, description: String(node['description'] ?? '') }, ...fields];
  });
}

describe.each(posthornKinds)('kubectl explain %s', (kind) => {
  const fields = fieldsOf(kind);

  test('has a sentence for every field', () => {
    expect(fields.filter(({ description }) => !/^\S.* .*\.$/s.test(description) && !/^\S+ \S.*\.$/s.test(description))).toEqual([]);
  });

  test('shows it at every level', async () => {
    const byPath = (all: Field[]): [string, string][] => all.map(({ path, description }): [string, string] => [path, description]).sort();
    expect(byPath(fieldsIn(kind, schemas[schemaName(kind)] ?? {}))).toEqual(byPath(fields));
    const { plural, shortName } = kinds[kind];
    const [ofKind, ofSpec, all] = await Promise.all([
      kubectl('explain', plural),
      kubectl('explain', `${shortName}.spec`),
      kubectl('explain', shortName, '--recursive'),
    ]);
    for (const { code, output } of [ofKind, ofSpec]) expect([code, output.includes('<no description>')]).toEqual([0, false]);
    for (const { path } of fields.slice(1)) expect(all.output).toContain(`${path.split('.').at(-1)}\t`);
  });
});

const broken = globSync('broken/*.yaml', { cwd: here }).flatMap((file) =>
  readFileSync(join(here, file), 'utf8')
    .split(/^---$/m)
    .map((text) => ({ text, kind: String(parse(text).kind), name: String(parse(text).metadata.name), ...expectation(text) })),
);

describe('kubectl apply --dry-run=server', () => {
  test('kubectl apply --dry-run=server is tried with a broken sample of every kind', () => {
    expect([...new Set(broken.map(({ kind }) => kind))].sort()).toEqual([...posthornKinds].sort());
  });

  test.each(broken.map((sample) => [sample.kind, sample.name, sample] as const))(
    'refuses the %s %s and says what is wrong',
    async (_, __, { text, field, says }) => {
      const { code, complaint } = await kubectl.with(text, 'apply', '--dry-run=server', '-f', '-');
      expect(code).not.toBe(0);
      expect(complaint).toContain(field);
      expect(complaint).toContain(says);
    },
  );

  test('kubectl apply --dry-run=server takes every sample of config/samples', async () => {
    for (const namespace of ['acme', 'default', 'posthorn-system']) await kubectl('create', 'namespace', namespace);
    // As kubectl apply makes it: the sample has it, too.
    await kubectl('create', 'namespace', 'quickstart', '--save-config');
    const files = globSync('config/samples/**/*.yaml', { cwd: join(here, '../..') });
    expect(files).not.toEqual([]);
    const { code, complaint } = await kubectl('apply', '--dry-run=server', ...files.flatMap((file) => ['-f', join(here, '../..', file)]));
    expect([code, complaint]).toEqual([0, '']);
  });
});

describe('standalone reads what YAML leaves open as kubectl does', () => {
  const scalars = [
    'no',
    'Yes',
    'ON',
    'off',
    'y',
    'n',
    'True',
    '"no"',
    "'0123'",
    '0123',
    '-012',
    '08',
    '0_7',
    '07.5',
    '0o14',
    '-0o7',
    '0x1F',
    '0b11',
    '1_000',
    '+5',
  ];
  const others = [
    '.5',
    '1e3',
    '1e400',
    '-1E400',
    '9'.repeat(400),
    '1.0',
    '0.1_1',
    '19.90',
    '1:30',
    '190:20:30',
    '2001-12-14',
    '2001-12-14T21:59:43Z',
    '~',
    'NULL',
    '""',
    '=',
    '!!binary aGk=',
    '!!str no',
    '|\n    no',
  ];
  const text = [
    'apiVersion: posthorn.dev/v1alpha1',
    'kind: Destination',
    'metadata:',
    '  name: a',
    'spec:',
    '  y: 1',
    '  list: [no, 1:30, 0o17]',
    '  merged: {<<: {a: on, b: 2}, b: 3}',
    ...[...scalars, ...others].map((scalar, index) => `  s${index}: ${scalar}`),
  ].join('\n');

  /** Uses no server; its output has everything as JSON. */
  const patchLocally = (yaml: string): Promise<Ended> =>
    kubectl.with(yaml, 'patch', '--local', '--type=merge', '-p', '{}', '-o', 'json', '-f', '-');
  /** Null: it refuses the text. */
  const specOfKubectl = async (yaml: string): Promise<unknown> => {
    const { code, output } = await patchLocally(yaml);
    return code === 0 ? JSON.parse(output).spec : null;
  };
  const specsOfKubectl = async (texts: readonly string[]): Promise<unknown[]> => {
    const { code, output, complaint } = await patchLocally(texts.join('---\n'));
    if (code !== 0) throw new Error(complaint);
    return output.split(/^(?=\{$)/m).map((each) => JSON.parse(each).spec);
  };
  const specOfStandalone = (yaml: string): unknown => {
    const { objects, errors } = parseManifests('a.yaml', yaml);
    const [object] = objects;
    const spec = object?.kind === 'Destination' ? object.spec : undefined;
    return errors.length > 0 ? null : JSON.parse(JSON.stringify(spec));
  };

  test('booleans, octal numbers, dates and numbers of base 60', async () => {
    const spec = await specOfKubectl(text);
    expect([spec, specOfStandalone(text)]).toEqual([expect.any(Object), spec]);
  });

  const keys = [
    ...['1', '-1', '+5', '0', '-0', '08', '0123', '-012', '0x1F', '0b11', '0o14', '1_000', '9007199254740993', '07.5'],
    ...['9223372036854775807', '9223372036854775808', '18446744073709551615', '18446744073709551616'],
    ...['-9223372036854775808', '-9223372036854775809', '123456789012345678901234567890'],
    ...[
      '1.0',
      '1.50',
      '19.90',
      '-0.0',
      '.5',
      '0.1_1',
      '0.1000000000000000055',
      '1e3',
      '1E3',
      '1e6',
      '1e-4',
      '1e-5',
      '1.5e6',
      '1e22',
      '1e400',
    ],
    ...['123456.789', '999999.5', '9999999', '9999999.0', '16777217.0', '3.4028236e38', '1e-45', '1e-46', '0.3'],
    ...['.inf', '-.INF', '.nan', 'no', 'ON', 'y', '"5"', '!!str 5', '!!int "7"', '!!float 5', '!!binary aGk='],
    ...['1:30', '2026-01-01', '=', '""', '~', 'null', '[a]', '{a: b}', '? [a, b]\n   ', '*number', '*list', '*nothing'],
  ];
  const manifestWith = (key: string): string => {
    const head = 'apiVersion: posthorn.dev/v1alpha1\nkind: Destination\nmetadata: {name: a}\nspec:\n';
    return `${head}  anchors: [&number 19.90, &list [a], &nothing ~]\n  a:\n    ${key} : {${key.startsWith('?') ? 'b' : key} : c}\n`;
  };
  const read = new Map<string, { spec: unknown; warnings: unknown[] }>();
  const readByKubectl = new Map<string, unknown>();
  beforeAll(async () => {
    for (const key of keys) {
      const warnings: unknown[] = [];
      const warn = (warning: unknown): number => warnings.push(warning);
      process.on('warning', warn);
      read.set(key, { spec: specOfStandalone(manifestWith(key)), warnings });
      await new Promise((resolve) => setImmediate(resolve));
      process.off('warning', warn);
    }
    // One text that kubectl refuses ends its run: each of those that it is to refuse has a run of its own.
    const taken = keys.filter((key) => read.get(key)?.spec !== null);
    const specs = await specsOfKubectl(taken.map(manifestWith));
    for (const [i, key] of taken.entries()) readByKubectl.set(key, specs[i]);
    for (const key of keys.filter((each) => !taken.includes(each))) readByKubectl.set(key, await specOfKubectl(manifestWith(key)));
  });
  test.each(keys)('the key %s of a map, without a word on the console', (key) => {
    const { spec, warnings } = read.get(key) ?? {};
    expect(readByKubectl.has(key)).toBe(true);
    expect(spec).toEqual(readByKubectl.get(key));
    expect(warnings).toEqual([]);
  });
});

/** The comments `# field: …` and `# says: …` of a sample. */
function expectation(text: string): { field: string; says: string } {
  const lines = text.split('\n').flatMap((line) => /^# ((?:field|says): .+)$/.exec(line)?.[1] ?? []);
  const { field, says } = parse(lines.join('\n'));
  return { field: String(field), says: String(says) };
}

interface Ended {
  code: number | string | null;
  output: string;
  complaint: string;
}

function run(input: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      join(kubernetesAssets(), 'kubectl'),
      [`--kubeconfig=${plane.kubeconfigPath}`, ...args],
      (error, output, complaint) => resolve({ code: error === null ? 0 : (error.code ?? null), output, complaint }),
    );
    child.stdin?.end(input);
  });
}

const kubectl = Object.assign((...args: string[]) => run('', args), { with: (input: string, ...args: string[]) => run(input, args) });
