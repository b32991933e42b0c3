import { expect, test } from '@jest/globals';
import { type FilterContext, fieldReader } from './filter-path.ts';

const event = {
  payload: {
    type: 'order.paid',
    customer: { address: { city: 'Köln' } },
    items: [{ sku: 'a' }, { sku: 'b' }],
    'dotted.key': 1,
  },
  headers: { 'x-github-event': 'push', 'set-cookie': ['a=1', 'b=2'] },
  query: {},
};

function read(field: string, context: FilterContext = event): unknown {
  const reader = fieldReader(field);
  if (typeof reader === 'string') throw new Error(`${field} ${reader}`);
  return reader(context);
}

test.each<[string, unknown]>([
  ['payload.type', 'order.paid'],
  ['type', 'order.paid'],
  ['payload.items.1.sku', 'b'],
  ['items[1].sku', 'b'],
  ['customer.address.city', 'Köln'],
  ['headers.X-GitHub-Event', 'push'],
  ['headers.x-github-event', 'push'],
  ['headers.set-cookie', 'a=1, b=2'],
  ["headers['X-GitHub-Event']", 'push'],
  ['headers["x-github-event"]', 'push'],
  ['items[-1].sku', 'b'],
  ['items[ 1 ][ "sku" ]', 'b'],
  ["['items'][1]['sku']", 'b'],
])('%s names %j', (field, value) => {
  expect(read(field)).toEqual(value);
});

const odd = {
  fields: {
    'System.State': 'Done',
    "it's": 1,
    'say "a"': 2,
    'a\\b': 3,
    'a]b': 4,
    ' x ': 5,
    '': 6,
    ü: 7,
    '*': 8,
    '\n': 9,
    'a b': 10,
    $: 11,
  },
  payload: { 'a.b': 12 },
  $: { id: 13 },
  'a.b': [[14]],
};
test.each<[string, unknown]>([
  ['fields["System.State"]', 'Done'],
  ["fields['System.State']", 'Done'],
  ["payload.fields['System.State']", 'Done'],
  ['payload[\'fields\']["System.State"]', 'Done'],
  ["fields['it\\'s']", 1],
  ['fields["it\'s"]', 1],
  ['fields[\'say "a"\']', 2],
  ['fields["say \\"a\\""]', 2],
  ["fields['a\\\\b']", 3],
  ["fields['a]b']", 4],
  ["fields[' x ']", 5],
  ["fields['']", 6],
  ["fields['\\u00fc']", 7],
  ['fields.ü', 7],
  ["fields['*']", 8],
  ["fields['\\n']", 9],
  ['fields.a b', 10],
  ['fields.$', 11],
  ["payload.payload['a.b']", 12],
  ["['payload']['a.b']", 12],
  ["['$'].id", 13],
  ["['a.b'][0][0]", 14],
  ["['a.b'].0.0", 14],
])('%s names %j', (field, value) => {
  expect(read(field, { payload: odd, headers: {}, query: {} })).toEqual(value);
});

test.each([
  'fields.System\\.State',
  'fields[System.State]',
  "fields['System.State'",
  "fields['a'b']",
  "fields['\\x']",
  'fields."System.State"',
  "fields.'System.State'",
  'fields.`System.State`',
  'items[]',
  'items[*].sku',
  'items.*.sku',
  'items[01]',
  'items[+1]',
  'items[1.0]',
  'items[0:1]',
  'items[?@.sku]',
  'items[0,1]',
  'items[0]sku',
  'items]0',
  'items..sku',
  'items.',
  'items[0].',
  '.items',
  '$.items',
  '$',
  ' items',
  'items .sku',
  "headers['']",
  'headers.a b',
  'headers.a:',
  "headers['a'].b",
  'headers[a]',
])('%s is refused', (field) => {
  expect(fieldReader(field)).toEqual(expect.stringMatching(/^(?:has|needs|must)/));
});

test.each([
  'items.length',
  'items.-1',
  'items.01',
  'items.2',
  'type.length',
  'type.0',
  'constructor',
  'constructor.name',
  '__proto__',
  'customer.__proto__',
  'customer.hasOwnProperty',
  'items.map',
  'headers.constructor',
  'headers.__proto__',
  'headers.missing',
  'dotted.key',
])('%s names nothing', (field) => {
  expect(read(field)).toBeUndefined();
});

test('a payload may have a key named __proto__, which is an ordinary key', () => {
  const payload: unknown = JSON.parse('{"__proto__": {"admin": true}, "constructor": {"prototype": {"x": 1}}}');
  expect(read('__proto__.admin', { payload, headers: {}, query: {} })).toBe(true);
  expect(read('constructor.prototype.x', { payload, headers: {}, query: {} })).toBe(1);
  expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
});

test('a payload that is not JSON has no fields', () => {
  expect(read('payload', { payload: undefined, headers: {}, query: {} })).toBeUndefined();
});

test('a payload that is no object is named by payload', () => {
  expect(read('payload', { payload: 7, headers: {}, query: {} })).toBe(7);
  expect(read('payload.0', { payload: ['a'], headers: {}, query: {} })).toBe('a');
});

test.each<[string, unknown]>([
  ['query.device', '7'],
  ["query['device']", '7'],
  ['query.tag', ['a', 'b']],
  ['query.tag[0]', 'a'],
  ['query.tag.1', 'b'],
  ['query.tag[-1]', 'b'],
  ['query.tag[2]', undefined],
  ['query.device[0]', '7'],
  ["query['user.id']", '5'],
  ["query['ids[]']", '6'],
  ['query.constructor', undefined],
  ['query.Device', undefined],
  ['query.text', 'of the payload'],
  ['query.user.id', 8],
  ['payload.query.device', 'of the payload'],
  ["['query'].device", 'of the payload'],
  ['query', { text: 'of the payload', device: 'of the payload', user: { id: 8 } }],
])('%s of a request with a query names %j', (field, value) => {
  const payload = { query: { text: 'of the payload', device: 'of the payload', user: { id: 8 } } };
  const query = { device: '7', tag: ['a', 'b'], 'user.id': '5', 'ids[]': '6' };
  expect(read(field, { payload, headers: {}, query })).toEqual(value);
});

test('an element of a list headers in the payload is no header', () => {
  expect(read('headers[0].value', { payload: { headers: [{ value: 1 }] }, headers: {}, query: {} })).toBe(1);
});
