import { expect, test } from '@jest/globals';
import { lintSuite } from '../../../test/support/lint-suite.ts';

const suite = lintSuite();
const head = (kind: string, name: string): string => `apiVersion: posthorn.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\n`;
const source = head('Source', 'orders');
const shop = `${head('Destination', 'shop')}spec: {http: {url: "https://shop.example.com/"}}\n`;
const route = (spec: string): string => `${head('Route', 'all')}spec:\n  sourceRef: {name: orders}\n${spec}`;
const destination = (spec: string): string => `${head('Destination', 'shop')}spec:\n${spec}`;

/** Findings as `line:column reason field`. */
async function placesIn(content: string): Promise<string[]> {
  const { findings } = await suite.linted({ 'a.yaml': content });
  return findings.map(({ line, column, reason, field = 'none' }) => `${line}:${column} ${reason} ${field}`);
}

test.each<[string, string, string]>([
  ['a field of a block', destination('  http:\n    url: nonsense\n'), '6:5 Invalid spec.http.url'],
  ['a field between braces', destination('  http: {timeoutMs: 5000, url: nonsense}\n'), '5:27 Invalid spec.http.url'],
  ['a field with a comment before it', destination('  http:\n    # The shop.\n\n    url: nonsense\n'), '8:5 Invalid spec.http.url'],
  [
    'a field behind letters that take several bytes',
    destination('  http: {headers: [{name: x-a, value: "ä"}], url: nonsense}\n'),
    '5:46 Invalid spec.http.url',
  ],
  [
    'an item of a list',
    destination(
      '  http:\n    url: https://a.example/\n    headers:\n      - name: x-a\n        value: a\n      - name: host\n        value: b\n',
    ),
    '10:9 Invalid spec.http.headers[1].name',
  ],
  [
    'an unknown field',
    destination('  http:\n    url: https://a.example/\n  throttle:\n    mode: "off"\n    speed: 5\n'),
    '9:5 Invalid spec.throttle.speed',
  ],
  ['a missing field at what lacks it', destination('  type: http\n  http:\n    method: POST\n'), '6:3 Invalid spec.http.url'],
  ['a missing spec at the object', `\n# The shop.\n${head('Route', 'all')}`, '3:1 Unreadable none'],
  ['a field of a second document', `${source}spec: {}\n---\n${destination('  http:\n    url: nonsense\n')}`, '11:5 Invalid spec.http.url'],
  [
    'a field in a file with the line ends of Windows',
    destination('  http:\n    url: nonsense\n').replaceAll('\n', '\r\n'),
    '6:5 Invalid spec.http.url',
  ],
  [
    'a field in JSON',
    `{\n "apiVersion": "posthorn.dev/v1alpha1", "kind": "Destination",\n "metadata": {"name": "shop"},\n "spec": {"http": {"url": "nonsense"}}\n}`,
    '4:20 Invalid spec.http.url',
  ],
  [
    'a field in a List',
    `apiVersion: v1\nkind: List\nitems:\n  - apiVersion: posthorn.dev/v1alpha1\n    kind: Destination\n    metadata: {name: shop}\n    spec: {http: {url: nonsense}}\n`,
    '7:19 Invalid spec.http.url',
  ],
  [
    'a field behind an alias',
    destination('  retryPolicy: &policy {maxRetries: 99}\n  http: {url: "https://a.example/"}\n'),
    '5:25 Invalid spec.retryPolicy.maxRetries',
  ],
  [
    'the reference to what is missing',
    `${source}spec: {}\n---\n${shop}---\n${route('  destinationRefs:\n    - name: shop\n    - {name: gone}\n')}`,
    '18:8 PartiallyInForce spec.destinationRefs[1].name',
  ],
  [
    'the only reference',
    `${source}spec: {}\n---\n${shop}---\n${route('  destinationRefs: [{name: shop}]\n  transformRef:\n    name: gone\n')}`,
    '18:5 TransformNotFound spec.transformRef.name',
  ],
  [
    'the reference to a Secret',
    destination(
      '  http:\n    url: https://a.example/\n    auth:\n      type: bearer\n      tokenSecretRef:\n        name: gone\n        key: token\n',
    ),
    '10:9 SecretNotFound spec.http.auth.tokenSecretRef.name',
  ],
  [
    'an address that no worker reaches',
    destination('  http:\n    method: PUT\n    url: http://10.0.0.1/\n'),
    '7:5 AddressNotAllowed spec.http.url',
  ],
  ['code', `${head('Transform', 'broken')}spec:\n  type: jsonata\n  code: |\n    {{{\n`, '6:3 InvalidTransform spec.code'],
  [
    'a credential in clear',
    destination('  http:\n    url: https://a.example/\n    headers:\n      - {name: authorization, value: Basic abc}\n'),
    '8:31 CredentialInClear spec.http.headers[authorization].value',
  ],
  [
    'what the plan does not have',
    `${head('Organization', 'acme')}spec: {namespace: default, plan: free}\n---\n${destination('  http:\n    url: https://a.example/\n    useStaticIp: true\n')}`,
    '12:5 PlanTooLow spec.http.useStaticIp',
  ],
  [
    'an id of another kind',
    `apiVersion: posthorn.dev/v1alpha1\nkind: Source\nmetadata:\n  name: orders\n  annotations:\n    a.example/b: c\n    posthorn.dev/id: nonsense\nspec: {}\n`,
    '7:5 InvalidId metadata.annotations.posthorn.dev/id',
  ],
  [
    'a kind that there is not',
    `${source}spec: {}\n---\napiVersion: posthorn.dev/v1alpha1\nkind: Rout\nmetadata: {name: r}\n`,
    '7:1 Unreadable none',
  ],
  ['a version that there is not', 'kind: Source\napiVersion: posthorn.dev/v9\nmetadata: {name: r}\n', '2:1 Unreadable none'],
  ['a misspelt member', `${source}spce: {}\n`, '4:1 Unreadable none'],
  ['a name that is a number', 'apiVersion: posthorn.dev/v1alpha1\nkind: Source\nmetadata:\n  name: 5\nspec: {}\n', '4:3 Unreadable none'],
  ['an object that comes again', `${source}spec: {}\n---\n${source}spec: {}\n`, '6:1 Duplicate none'],
])('The place of a finding is that of %s', async (_what, content, expected) => {
  expect(await placesIn(content)).toEqual([expected]);
});

test('Findings are in the order of files and places', async () => {
  const { findings } = await suite.linted({
    'b.yaml': `${route('  destinationRefs: [{name: gone}]\n')}---\nkind: [\n`,
    'a.yaml': `${destination('  throttle: {rateLimit: 5}\n  http: {url: nonsense}\n')}---\n${source}spec: {dedup: {strategy: none, windowHours: 5}}\n`,
  });
  const places = findings.map(({ file, line, reason }) => `${file.slice(-6)}:${line} ${reason}`);
  expect(places).toEqual(['a.yaml:6 Invalid', 'a.yaml:11 NoEffect', 'b.yaml:6 DestinationNotFound', 'b.yaml:9 Unreadable']);
});
