import { expect, test } from '@jest/globals';
import { readFieldMapping } from './field-mapping.ts';

const rules = (source: string) => [{ source, target: 'a', type: 'json' as const }];

test.each([
  '$',
  '$.*',
  '$[*]',
  '$..sku',
  '$..*',
  '$..[?@.a > 1]',
  '$[?@.a[0].b]',
  "$.query..[?@ == 'x']",
  '$.id',
  '$.receivedAt',
  '$.payload',
  '$.payload[0]',
  '$.payload.headers.X',
  '$.headers["x-shop"]',
  '$.headers.*',
  '$.headers..x',
  '$.query.a',
  '$.query.A',
  '$.query.a[0]',
  '$.query.a[-1:]',
  "$.query['ids[]'][*]",
  "$['id','source']",
  '$[?@.sku]',
  '$[?@ == "shop"]',
  '$.headers[?@ == "x"]',
  '$.payload[-3:-1]',
  '$.payload[5:2:-1]',
  '$.payload[-1:2]',
  '$.payload[?@.a <= true]',
  '$.payload[?@.a == null]',
  '$.payload[?@.shop == $.source]',
  '$.payload[?match(@.a, "[a-z]+")]',
])('the path %s of a field mapping is taken', (path) => expect(readFieldMapping(rules(path)).problem).toBeUndefined());

test.each([
  ['$.body.id', /'body' can match nothing: the members are id, source, receivedAt, headers, query, payload$/],
  ['$.Payload.id', /'Payload' can match nothing/],
  ['$.__proto__', /'__proto__' can match nothing/],
  ["$['payload','x']", /'x' can match nothing/],
  ['$[0]', /the index 0 can match nothing: an object has no indexes/],
  ['$[0:1]', /a slice can match nothing: an object has no indexes/],
  ['$.id.x', /'x' can match nothing: a text has no members/],
  ['$.id[*]', /a wildcard can match nothing/],
  ['$.source..*', /can match nothing/],
  ['$.receivedAt[0]', /the index 0 can match nothing/],
  ['$.receivedAt[?@.x]', /a filter can match nothing/],
  ['$.headers.x.y', /'y' can match nothing/],
  ['$.headers[0]', /can match nothing/],
  ["$.headers['X-Shop']", /'X-Shop' can match nothing: names of headers are in lower case, as \['x-shop'\]$/],
  ["$.headers['a b']", /it is no name of a header/],
  ['$.headers[?@.a]', /'a' can match nothing/],
  ['$.query.a.b', /'b' can match nothing/],
  ['$.query.a[0][0]', /can match nothing/],
  ['$.query[0]', /can match nothing/],
  ['$.payload[0:0]', /a slice can match nothing: it is empty/],
  ['$.payload[::0]', /it is empty/],
  ['$.payload[3:1]', /it is empty/],
  ['$.payload[-1:-3]', /it is empty/],
  ['$.payload[2:5:-1]', /it is empty/],
  ['$.payload[?@.a < true]', /a comparison by < can match nothing/],
  ['$.payload[?null > @.a]', /a comparison by > can match nothing/],
  ['$.payload[?match(@.a, "(")]', /can match nothing: it is no regular expression/],
  ['$.payload[?!search(@.a, "[")]', /can match nothing: it is no regular expression/],
  ['$.payload[?@.a == $.paylod.x]', /'paylod' can match nothing/],
  ['$.payload[?@.a && (@.b || count($.id.x) > 1)]', /'x' can match nothing/],
])('the path %s of a field mapping can match nothing: it is refused', (path, message) => {
  expect(readFieldMapping(rules(path)).problem).toMatchObject({ index: 0, field: 'source', message: expect.stringMatching(message) });
});

test.each(['', 'payload', '$.payload..', '$..', '$.payload[?@.a = 1]'])('%j is no path', (path) => {
  expect(readFieldMapping(rules(path)).problem).toBeDefined();
});
