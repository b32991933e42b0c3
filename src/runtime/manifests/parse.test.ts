import { describe, expect, test } from '@jest/globals';
import { manifestText, parseManifests } from './parse.ts';

describe('a manifest file', () => {
  test('a manifest file may hold several documents; a broken one leaves the others', () => {
    const parsed = parseManifests(
      'a.yaml',
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n---\nkind: [\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: two}\n',
    );
    expect(parsed.objects.map(({ metadata }) => metadata.name)).toContain('one');
    expect(parsed.errors[0]).toMatchObject({ file: 'a.yaml' });
  });

  const one = (name: string): string => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}\n`;
  test.each<[string, Buffer]>([
    ['joined of files with a mark each', Buffer.from(`\ufeff${one('a')}\ufeff---\n${one('b')}---\n\ufeff${one('c')}`)],
    ['in UTF-16 with its mark', Buffer.from(`\ufeff${one('a')}---\n${one('b')}---\n${one('c')}`, 'utf16le')],
    ['in UTF-16 of the other order', Buffer.from(`\ufeff${one('a')}---\n${one('b')}---\n${one('c')}`, 'utf16le').swap16()],
  ])('a byte order mark is no part of a document: %s', (_what, bytes) => {
    const { objects, errors } = parseManifests('a.yaml', manifestText(bytes));
    expect([objects.map(({ metadata }) => metadata.name), errors]).toEqual([['a', 'b', 'c'], []]);
  });

  test('turns stringData into data, where it goes before data', () => {
    const text = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
      data: { a: 'YQ==', b: 'Yg==' },
      stringData: { b: 'new' },
    });
    expect(parseManifests('s.json', text).objects).toEqual([
      { kind: 'Secret', metadata: { name: 's', namespace: 'default' }, data: { a: 'YQ==', b: Buffer.from('new').toString('base64') } },
    ]);
  });

  test('a manifest file puts what names no namespace into default, and clusterwide kinds into none', () => {
    const text =
      'apiVersion: posthorn.dev/v1alpha1\nkind: Source\nmetadata: {name: s}\nspec: {}\n---\napiVersion: posthorn.dev/v1alpha1\nkind: Organization\nmetadata: {name: o, namespace: x}\nspec: {namespace: o}\n';
    expect(parseManifests('a.yaml', text).objects.map(({ metadata }) => metadata)).toEqual([
      { name: 's', namespace: 'default' },
      { name: 'o' },
    ]);
  });

  test.each<[string, unknown]>([
    ['no', false],
    ['on', true],
    ['"no"', 'no'],
    ['0123', 83],
    ['0o14', 12],
    ['08', 8],
    ['1_000', 1000],
    ['1:30', '1:30'],
    ['2001-12-14', '2001-12-14'],
    ['!!binary aGk=', 'hi'],
  ])('a manifest file reads %s as kubectl does', (scalar, value) => {
    const { objects } = parseManifests(
      'a.yaml',
      `apiVersion: posthorn.dev/v1alpha1\nkind: Source\nmetadata: {name: s}\nspec: {x: ${scalar}}\n`,
    );
    expect(objects).toMatchObject([{ spec: { x: value } }]);
  });

  test('a manifest file may hold a List', () => {
    const text = JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } }],
    });
    expect(parseManifests('l.json', text)).toEqual({ objects: [{ kind: 'Namespace', metadata: { name: 'n' } }], errors: [] });
  });

  test('a manifest file may hold a list of one kind, as the API server shows it', () => {
    const items = [{ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Source', metadata: { name: 's' }, spec: {} }];
    const text = JSON.stringify({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'SourceList', metadata: {}, items });
    expect(parseManifests('l.json', text)).toMatchObject({ objects: [{ kind: 'Source', metadata: { name: 's' } }], errors: [] });
  });

  test.each([
    ['a kind of somebody else', 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}', /not a kind of Posthorn/],
    [
      'a pool of workers, which clusters have',
      'apiVersion: posthorn.dev/v1alpha1\nkind: DeliveryPool\nmetadata: {name: p}\nspec: {}',
      /standalone has workers of its own/,
    ],
    ['a known kind of another version', 'apiVersion: posthorn.dev/v9\nkind: Route\nmetadata: {name: r}', /not a kind of Posthorn/],
    ['a misspelt field beside spec', 'apiVersion: posthorn.dev/v1alpha1\nkind: Route\nmetadata: {name: r}\nspce: {}', /spce/],
    ['text that is no object', 'just text', /expected object/],
    [
      'aliases that grow without end',
      `a: &a [x, x, x, x, x, x, x, x, x]\n${[...'bcdefgh'].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[i]}`)}]`).join('\n')}`,
      /alias/,
    ],
  ])('a manifest file is reported for %s', (_, text, message) => {
    expect(parseManifests('f.yaml', text)).toMatchObject({
      objects: [],
      errors: [{ file: 'f.yaml', message: expect.stringMatching(message) }],
    });
  });

  test('a manifest file has numbers with all of their digits, in any form that YAML has', () => {
    const numbers = [
      ['9007199254740993', '9007199254740993'],
      ['-9007199254740993', '-9007199254740993'],
      ['+12345678901234567890', '12345678901234567890'],
      ['0x1FFFFFFFFFFFFFFF', '2305843009213693951'],
      ['0o777777777777777777777', '9223372036854775807'],
      ['19.90', '19.90'],
      ['.5', '0.5'],
      ['5.', '5'],
      ['007', '7'],
      ['1E400', '"1E400"'],
      ['0.1000000000000000055', '0.1000000000000000055'],
      ['"1.0"', '"1.0"'],
      ['10', '10'],
    ];
    const value = `[${numbers.map(([yaml]) => yaml).join(', ')}]`;
    const text = `apiVersion: posthorn.dev/v1alpha1\nkind: Filter\nmetadata: {name: f}\nspec: {conditions: [{field: a, operator: in, value: ${value}}]}`;
    const [filter] = parseManifests('f.yaml', text).objects;
    expect(JSON.stringify(filter)).toContain(`"value":[${numbers.map(([, json]) => json).join(',')}]`);
  });

  test('a manifest file may be empty or hold nothing but comments', () => {
    expect(parseManifests('e.yaml', '')).toEqual({ objects: [], errors: [] });
    expect(parseManifests('e.yaml', '# nothing\n---\n')).toEqual({ objects: [], errors: [] });
  });
});
