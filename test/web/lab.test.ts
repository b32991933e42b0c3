import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { parse, parseAllDocuments, parseDocument } from 'yaml';
import { slugCandidates, slugOf } from '../../src/facade/records/slug.ts';
import { kinds } from '../../src/resources/kinds.ts';
import { nameRules } from '../../src/resources/names.ts';
import { brokenRules } from '../../src/resources/rules.ts';
import { definitionOf, kinds as kindsOfLab, storedIn } from '../../src/web/screens/lab-kinds.ts';
import { manifestOf, subscriptionManifest } from '../../src/web/screens/lab-manifest.ts';
import { subscribed, valuesIn } from '../../src/web/screens/lab-outcomes.ts';
import { objectNameOf, yamlOf } from '../../src/web/screens/lab-yaml.ts';
import { lineDiff } from '../../src/web/screens/line-diff.ts';
import { forEachAtOnce } from '../../src/web/ui/at-once.ts';
import { laidOut, memberTexts } from '../../src/web/ui/json-layout.ts';

const hostile = [
  'plain',
  'yes',
  '1e3',
  '- a: b # c',
  '"quoted" \\ \'single\'',
  'line\nline\n\nend',
  'ends\n',
  'ends twice\n\n',
  '  indented first',
  '\tat a tab',
  'a\r\nb',
  'nul\u0000 del\u007f nel\u0085 ls\u2028 bom\ufeff',
  '😀 {{ payload }} & *a !b %c @d `e`',
  '---\n...\n',
  '\u0001b\nc',
  '\n',
];

describe('the manifest of the Lab', () => {
  test.each(hostile)('the manifest of the Lab has %j in each field as it is', (text) => {
    const schema = { type: 'object', properties: { [text]: { const: text } }, description: text };
    const conditions = [{ field: 'payload.a', operator: 'in', value: [text, 19.9] }];
    const read = (kind: 'Filter' | 'Transform' | 'PayloadSchema', spec: [string, string][]): unknown =>
      parse(yamlOf({ kind, name: 'a-name', spec }), { version: '1.1', schema: 'yaml-1.1' }).spec;
    expect(read('PayloadSchema', [['jsonSchema', JSON.stringify(schema)]])).toEqual({ jsonSchema: schema });
    expect(
      read('Filter', [
        ['logic', '"OR"'],
        ['conditions', JSON.stringify(conditions, null, 4)],
      ]),
    ).toEqual({ logic: 'OR', conditions });
    expect(
      read('Transform', [
        ['name', JSON.stringify(text)],
        ['code', JSON.stringify(text)],
      ]),
    ).toEqual({ name: text, code: text });
  });

  test('the manifest of the Lab writes a surrogate pair that was escaped as the character, and a number with its digits', () => {
    const yaml = yamlOf({ kind: 'PayloadSchema', name: 'a', spec: [['jsonSchema', '{"const":["\\ud83d\\ude00",12345678901234567890]}']] });
    expect(yaml).toContain('"😀"');
    expect(yaml).toContain('12345678901234567890');
  });

  test.each([
    ['filter.yaml', 'filter', 'Filter'],
    ['transform.yaml', 'transform', 'Transform'],
    ['payload-schema.yaml', 'schema', 'PayloadSchema'],
    ['webhook-event-type.yaml', 'event-type', 'WebhookEventType'],
  ] as const)('the manifest of the Lab of %s has the fields of the sample, and its kind takes them', (file, kind, resource) => {
    const text = readFileSync(new URL(`../../config/samples/${file}`, import.meta.url), 'utf8');
    for (const sample of parseAllDocuments(text).map((document) => document.toJS())) {
      // As the API answers it.
      const { metadata, spec } = sample;
      const stored = storedIn(kind, JSON.stringify({ id: 'x', slug: metadata.name, name: spec.name ?? metadata.name, ...spec }));
      const definition = definitionOf(kind, stored.draft);
      if (!('fields' in definition)) throw new Error(definition.problem);
      const name: [string, string][] = spec.name === undefined ? [] : [['name', JSON.stringify(stored.name)]];
      const yaml = yamlOf({ kind: resource, name: stored.slug, spec: [...name, ...stored.others, ...definition.fields] });
      const document = parseDocument(yaml);
      expect(document.errors).toEqual([]);
      const made = document.toJS();
      const { namespace: _namespace, ...named } = metadata;
      expect(made).toEqual({ ...sample, metadata: named });
      expect(kinds[resource].spec.safeParse(made.spec).success).toBe(true);
    }
  });

  test('the manifest of the Lab of a subscription names its endpoint, its event type and its transform, and its kind takes it', () => {
    const text = readFileSync(new URL('../../config/samples/webhook-subscription.yaml', import.meta.url), 'utf8');
    const sample = parseDocument(text).toJS();
    const { endpointRef, eventTypeRef, filterExpression, labelFilters, ...others } = sample.spec;
    // As the API answers it.
    const record = {
      id: 'sub_1',
      endpointId: 'ep_1',
      eventTypeName: eventTypeRef.name.replaceAll('-', '_'),
      labelFilters: Object.fromEntries(labelFilters.map(({ key, values }: { key: string; values: string[] }) => [key, values])),
      filterExpression,
      transformId: null,
      isEnabled: true,
      ...others,
    };
    const stored = storedIn('expression', JSON.stringify({ data: record }));
    const definition = definitionOf('expression', stored.draft);
    if (!('fields' in definition)) throw new Error(definition.problem);
    const { fields } = definition;
    const refs = { own: sample.metadata.name, endpoint: endpointRef.name, transform: null };
    const madeOf = (manifest: ReturnType<typeof subscriptionManifest>) => (manifest === null ? null : parse(yamlOf(manifest)));
    const { eventType } = stored;
    const { namespace: _namespace, ...metadata } = sample.metadata;
    const made = madeOf(subscriptionManifest(refs, { stored, isNew: false, eventType: 'order.other', fields }));
    const { labelFilterMode: _usual, ...spec } = sample.spec;
    expect(made).toEqual({ ...sample, metadata, spec });
    const unnamed = { own: null, endpoint: null, transform: 'short' };
    const own = madeOf(subscriptionManifest(unnamed, { stored: null, isNew: true, eventType, fields }));
    expect(own.spec).toEqual({
      endpointRef: { name: 'ENDPOINT' },
      eventTypeRef,
      transformRef: { name: 'short' },
      filterExpression,
    });
    expect([made, own].map((each) => kinds.WebhookSubscription.spec.safeParse(each.spec).success)).toEqual([true, false]);
    expect(subscriptionManifest(refs, { stored, isNew: true, eventType: null, fields })).toBeNull();
    const ofDeletedType = { ...stored, eventType: null };
    expect(subscriptionManifest(refs, { stored: ofDeletedType, isNew: false, eventType: 'order.other', fields })).toBeNull();
  });

  test('the manifest of the Lab of another subscription has the event type that is chosen, and the label filters of the one that was opened', () => {
    const record = {
      id: 'sub_1',
      endpointId: 'ep_1',
      eventTypeName: 'order.paid',
      labelFilters: { region: 'eu' },
      labelFilterMode: 'any',
      filterExpression: 'true',
      isEnabled: false,
    };
    const stored = storedIn('expression', JSON.stringify({ data: record }));
    const edited = { stored, isNew: true, eventType: 'order.sent', fields: [['filterExpression', '"false"']] satisfies [string, string][] };
    const manifest = subscriptionManifest({ own: null, endpoint: 'shop', transform: null }, edited);
    expect(manifest === null ? null : parse(yamlOf(manifest)).spec).toEqual({
      endpointRef: { name: 'shop' },
      eventTypeRef: { name: 'order.sent' },
      labelFilters: [{ key: 'region', values: ['eu'] }],
      labelFilterMode: 'any',
      filterExpression: 'false',
    });
  });

  test.each([
    ['Large orders (EU)!', 'large-orders-eu'],
    ['…', 'lab-filter'],
    ['Größe', 'grosse'],
    ['Smørrebrød & Ærø', 'smorrebrod-aero'],
    ['Łódź İstanbul ﬁx', 'lodz-istanbul-fix'],
    [`${'a'.repeat(49)} b`, 'a'.repeat(49)],
    ['x'.repeat(200), 'x'.repeat(50)],
    ['Test', 'test-2'],
    ['Export', 'export-2'],
    ['Import', 'import-2'],
    ['Bulk', 'bulk-2'],
    ['Upsert', 'upsert-2'],
    ['By external id', 'by-external-id-2'],
  ])('the manifest of the Lab names the object %j as the API does, and the CRD takes it: %s', (name, expected) => {
    const made = objectNameOf(name, 'lab-filter');
    expect(made).toBe(expected);
    expect(made).toBe(slugCandidates(slugOf(name, 'lab-filter')).next().value);
    const broken = nameRules.filter((rule) => rule.appliesTo('Filter') && !rule.check(made, {}));
    expect(broken).toEqual([]);
  });

  test('the manifest of the Lab gives another object no name that is taken', () => {
    expect([objectNameOf('To chat', 'x', 'to-chat'), objectNameOf('Test', 'x', 'test-2')]).toEqual(['to-chat-2', 'test-3']);
    expect(objectNameOf('x'.repeat(50), 'x', 'x'.repeat(50))).toBe(`${'x'.repeat(48)}-2`);
  });

  test.each([
    ['filter', { logic: 'AND', conditions: [{ field: 'payload.a', operator: 'exists' }] }],
    ['transform', { type: 'jsonata', code: 'payload' }],
    ['schema', { jsonSchema: { type: 'object' } }],
  ] as const)(
    'the manifest of the Lab of a %s that another organization shares refers to it, and has the content once that is changed',
    (kind, content) => {
      const answer = {
        id: 'x',
        slug: 'mine',
        name: 'Mine',
        sharedWith: [],
        sharedFrom: { organization: 'acme', slug: 'shared' },
        ...content,
      };
      const stored = storedIn(kind, JSON.stringify(answer));
      const { spec, rules } = kinds[kindsOfLab[kind].resource];
      const isTaken = (made: unknown): boolean => spec.safeParse(made).success && brokenRules(rules, made, undefined).length === 0;
      const madeOf = (change: { newName?: string; isChanged?: boolean }): { metadata: { name: string }; spec: unknown } => {
        const definition = definitionOf(kind, stored.draft);
        const fields = 'fields' in definition ? definition.fields : null;
        const manifest = manifestOf(kindsOfLab[kind], { stored, fields, newName: '', isChanged: false, ...change });
        if (manifest === null) throw new Error('no manifest');
        const made = parse(yamlOf(manifest));
        expect(isTaken(made.spec)).toBe(true);
        return made;
      };
      const taken = { name: 'Mine', sharedFrom: { organization: 'acme', name: 'shared' } };
      expect(madeOf({})).toMatchObject({ metadata: { name: 'mine' }, spec: taken });
      expect(isTaken({ ...taken, ...content })).toBe(false);
      const changed = madeOf({ isChanged: true });
      expect([changed.metadata.name, changed.spec]).toEqual(['mine-2', { name: 'Mine', ...content }]);
      const renamed = madeOf({ newName: 'Other' });
      expect([renamed.metadata.name, renamed.spec]).toEqual(['other', { name: 'Other', ...content }]);
      expect(madeOf({ newName: 'mine' }).metadata.name).toBe('mine-2');
    },
  );
});

describe('a draft of the Lab', () => {
  test('a draft of the Lab keeps the digits of the numbers that the API answers', () => {
    const answer = '{"id":"flt_1","logic":"OR","conditions":[{"field":"payload.id","operator":"equals","value":9007199254740993}]}';
    const { draft } = storedIn('filter', answer);
    expect(draft.text).toContain('"value": 9007199254740993');
    expect(definitionOf('filter', draft)).toEqual({
      fields: [
        ['logic', '"OR"'],
        ['conditions', expect.stringContaining('9007199254740993')],
      ],
    });
  });

  test.each([
    ['filter', '{', 'The text is not JSON'],
    ['filter', '[]', 'The text must be a JSON object.'],
    ['filter', '{"logic":"OR"}', 'There are no conditions.'],
    ['filter', '{"conditions":[],"name":"a"}', 'A filter has logic and conditions, and no name.'],
    ['schema', 'true', 'The text must be a JSON object.'],
    ['event-type', '[]', 'The text must be a JSON object.'],
    ['event-type', '', 'There is no schema'],
    ['expression', '\n', 'There is no expression'],
    ['transform', ' ', 'There is no code.'],
  ] as const)('a draft of the Lab of a %s that is %j says: %s', (kind, text, problem) => {
    expect(definitionOf(kind, { text, type: 'jsonata' })).toEqual({ problem: expect.stringContaining(problem) });
  });
});

describe('an expression of the Lab', () => {
  const seen = {
    type: 'order.paid',
    data: '{"total":20.50,"items":[{"sku":"a"}],"customer":{"tier":"gold","a-b":12345678901234567890}}',
    labels: '{"region":"eu"}',
    metadata: '{}',
  };

  test.each([
    ['event.data.total > 100.0', ['event.data.total=20.50']],
    ['event.data.total > 1.0 && event.data.total < 5.0', ['event.data.total=20.50']],
    ['event.data.customer["a-b"] == 1', ['event.data.customer["a-b"]=12345678901234567890']],
    ['event.data.customer.tier.startsWith("s")', ['event.data.customer.tier="gold"']],
    ['event.data.items.exists(i, i.sku == "b")', ['event.data.items=[{"sku":"a"}]']],
    ['event.data.items[0].sku == "b"', ['event.data.items=[{"sku":"a"}]']],
    ['labels.region == "us" && event.type == "x"', ['labels.region="eu"', 'event.type="order.paid"']],
    ['has(metadata.by) && event.data.gone == 1', ['metadata.by=not there', 'event.data.gone=not there']],
    ['event.data.total > 1.0 || "event.data.customer" == labels.region', ['event.data.total=20.50', 'labels.region="eu"']],
  ])('%s requests %j', (expression, expected) => {
    expect(valuesIn(expression, seen).map(({ path, value }) => `${path}=${value}`)).toEqual(expected);
  });

  test.each([
    [
      { matches: true, error: null, labels: [] },
      { result: 'passes', why: [] },
    ],
    [
      { matches: false, error: null, labels: [] },
      { result: 'fails', why: ['The expression is false.', 'event.data.total is 20.50'] },
    ],
    [
      { matches: false, error: 'no such key', labels: [] },
      { result: 'fails', why: ['The expression fails: no such key', 'event.data.total is 20.50'] },
    ],
    [
      { matches: false, error: null, labels: [{ label: 'region', expected: ['us', 'ca'], actual: 'eu' }] },
      { result: 'fails', why: ['label region is eu, expected us or ca'] },
    ],
  ])('an expression of the Lab that the API answers with %j is reported as %j', (answer, outcome) => {
    expect(subscribed('event.data.total > 100.0', seen, JSON.stringify({ success: true, ...answer }))).toEqual(outcome);
  });
});

test('JSON is laid out with its numbers and repeated members as they are written', () => {
  expect(laidOut('{"a":1.10,"b":[],"c":[{"d":1e3}],"a":{}}')).toEqual([
    '{',
    '  "a": 1.10,',
    '  "b": [],',
    '  "c": [',
    '    {',
    '      "d": 1e3',
    '    }',
    '  ],',
    '  "a": {}',
    '}',
  ]);
  expect(laidOut('no JSON\r\nat all')).toEqual(['no JSON', 'at all']);
  expect(memberTexts('{"a":{"b":1.0},"c\\"":"x"}')).toEqual(
    new Map([
      ['a', '{"b":1.0}'],
      ['c"', '"x"'],
    ]),
  );
  expect(memberTexts('[1]')).toBeNull();
});

describe('lines that differ', () => {
  test.each([
    ['abc', 'abc', ['a=a', 'b=b', 'c=c']],
    ['abcd', 'axcd', ['a=a', 'b>x', 'c=c', 'd=d']],
    ['abd', 'abcd', ['a=a', 'b=b', '>c', 'd=d']],
    ['abcab', 'cab', ['a>', 'b>', 'c=c', 'a=a', 'b=b']],
    ['xaybz', 'pab', ['x>p', 'a=a', 'y>', 'b=b', 'z>']],
    ['', 'ab', ['>a', '>b']],
  ])('of %j and %j are beside each other', (before, after, expected) => {
    const rows = lineDiff([...before], [...after]);
    expect(rows.map((row) => `${row.before ?? ''}${row.isEqual ? '=' : '>'}${row.after ?? ''}`)).toEqual(expected);
  });
});

describe('work that is done at once', () => {
  test('work that is done at once is begun in order, never more of it than agreed, until the signal aborts', async () => {
    const controller = new AbortController();
    const begun: number[] = [];
    let under = 0;
    let most = 0;
    const work = async (item: number): Promise<void> => {
      begun.push(item);
      under += 1;
      most = Math.max(most, under);
      await new Promise((resolve) => setImmediate(resolve));
      under -= 1;
      if (item === 6) controller.abort(new Error('left'));
    };
    const items = Array.from({ length: 20 }, (_, index) => index);
    await expect(forEachAtOnce(items, work, { atOnce: 4, signal: controller.signal })).rejects.toThrow('left');
    expect(most).toBe(4);
    expect(begun).toEqual(items.slice(0, begun.length));
    expect(begun.length).toBeLessThan(12);
  });
});
