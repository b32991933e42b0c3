import { describe, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { lintSuite } from '../../../test/support/lint-suite.ts';
import type { PosthornKind } from '../../resources/kinds.ts';

const suite = lintSuite();
const url = 'https://a.example/';
const headers = (name: string) => [{ name, value: 'a' }];
const secret = { name: 's', key: 'k' };
const s3 = { bucket: 'bucket', region: 'eu-central-1' };

/** Fields of the spec that have no effect. */
async function idleFields(kind: PosthornKind, spec: object): Promise<string[]> {
  const manifest = stringify({ apiVersion: 'posthorn.dev/v1alpha1', kind, metadata: { name: 'one' }, spec });
  const { findings } = await suite.linted({ 'a.yaml': manifest });
  expect(findings.filter(({ reason }) => reason === 'Invalid')).toEqual([]);
  const idle = findings.filter(({ reason }) => reason === 'NoEffect');
  for (const { severity } of idle) expect(severity).toBe('warning');
  return idle.map(({ field = '' }) => field.replace('spec.', '')).sort();
}

describe('A field without effect is a warning', () => {
  test.each<[string, PosthornKind, object, string[]]>([
    [
      'a header that is not kept with events',
      'Destination',
      { http: { url, forwardHeaders: ['x-topic', 'X-Forwarded-For'] } },
      ['http.forwardHeaders[1]'],
    ],
    [
      'a header of events that the destination sets',
      'Destination',
      { http: { url, forwardHeaders: ['x-a', 'X-B', 'x-c'], headers: headers('x-b'), headerTemplates: [{ name: 'X-C', template: 'c' }] } },
      ['http.forwardHeaders[1]', 'http.forwardHeaders[2]'],
    ],
    [
      'a header of events with the name of a credential',
      'Destination',
      {
        http: {
          url,
          forwardHeaders: ['x-shop'],
          auth: { type: 'custom_header', headerName: 'X-Shop', headerValueSecretRef: secret },
        },
      },
      ['http.forwardHeaders[0]'],
    ],
    [
      'a template of a header that is not kept',
      'Destination',
      {
        http: {
          url,
          headerTemplates: [
            { name: 'x-a', template: '{{ headers.x-topic }}' },
            { name: 'x-b', template: '{{ headers.x-real-ip }}' },
          ],
        },
      },
      ['http.headerTemplates[1].template'],
    ],
    ['a scheme of signatures without a secret', 'Destination', { http: { url, signatureScheme: 'hmac-sha256' } }, ['http.signatureScheme']],
    [
      'limits of a throttle that is off',
      'Destination',
      { http: { url }, throttle: { rateLimit: 5, queueLimit: 5 } },
      ['throttle.queueLimit', 'throttle.rateLimit'],
    ],
    [
      'limits of another mode of a throttle',
      'Destination',
      { http: { url }, throttle: { mode: 'concurrency', maxConcurrency: 5, strict: true, queueLimit: 5 } },
      ['throttle.strict'],
    ],
    [
      'a policy of retries beside delays',
      'Destination',
      { http: { url }, retryPolicy: { delaysMs: [1000], maxRetries: 5 } },
      ['retryPolicy.maxRetries'],
    ],
    [
      'keys beside the identity of the platform',
      'Destination',
      { type: 's3', s3: { ...s3, accessKeyId: 'a', secretAccessKeySecretRef: secret }, warehouse: { identity: 'platform' } },
      ['s3.accessKeyId', 's3.secretAccessKeySecretRef'],
    ],
    [
      'what judges requests at a source without any',
      'Source',
      { provider: 'posthorn', rateLimitPerMinute: 5, dedup: { strategy: 'none' } },
      ['dedup', 'rateLimitPerMinute'],
    ],
    ['a refusal of signatures without a secret', 'Source', { rejectInvalidSignatures: false }, ['rejectInvalidSignatures']],
    [
      'a list of networks that does not count',
      'Source',
      { ipFilter: { mode: 'allowlist', allowlist: ['192.0.2.0/24'], denylist: ['192.0.2.1/32'] } },
      ['ipFilter.denylist'],
    ],
    [
      'a window without deduplication',
      'Source',
      { dedup: { strategy: 'none', header: 'x-id', windowHours: 5 } },
      ['dedup.header', 'dedup.windowHours'],
    ],
    ['a header of an id beside the hash of the body', 'Source', { dedup: { strategy: 'payload_hash', header: 'x-id' } }, ['dedup.header']],
    ['a failover without destinations', 'Route', { sourceRef: { name: 's' }, failover: { afterAttempts: 2 } }, ['failover.afterAttempts']],
    [
      'recipients of no alerts',
      'Route',
      { sourceRef: { name: 's' }, notifications: { emails: ['a@acme.example'], failureThreshold: 5 } },
      ['notifications.emails', 'notifications.failureThreshold'],
    ],
    [
      'a threshold of failures of a route that tells of successes',
      'Route',
      { sourceRef: { name: 's' }, notifications: { onSuccess: true, emails: ['a@acme.example'], failureThreshold: 5 } },
      ['notifications.failureThreshold'],
    ],
    [
      'an even rate without a limit',
      'WebhookEndpoint',
      { applicationRef: { name: 'a' }, url, signingSecretRef: secret, rateLimitStrict: true },
      ['rateLimitStrict'],
    ],
    [
      'a limit of failures of a dry run',
      'Replay',
      { what: 'messages', dryRun: true, stopAfterFailurePercent: 5 },
      ['stopAfterFailurePercent'],
    ],
  ])('%s', async (_what, kind, spec, expected) => {
    expect(await idleFields(kind, spec)).toEqual(expected);
  });

  test('the namespace of an object that is in none', async () => {
    const manifest =
      'apiVersion: posthorn.dev/v1alpha1\nkind: Organization\nmetadata: {name: acme, namespace: acme}\nspec: {namespace: acme}\n';
    const { code, findings } = await suite.linted({ 'a.yaml': manifest });
    expect([code, findings]).toMatchObject([0, [{ reason: 'NoEffect', field: 'metadata.namespace', line: 3, column: 24 }]]);
  });
});

describe('A field with an effect, and a default, are no finding', () => {
  test.each<[string, PosthornKind, object]>([
    ['a header of events beside others', 'Destination', { http: { url, forwardHeaders: ['x-a'], headers: headers('x-b') } }],
    [
      'a throttle with its limits',
      'Destination',
      { http: { url }, throttle: { mode: 'rate', rateLimit: 5, rateUnit: 'second', strict: true, queueLimit: 5 } },
    ],
    ['a policy of retries without delays', 'Destination', { http: { url }, retryPolicy: { maxRetries: 5 } }],
    ['both lists of networks', 'Source', { ipFilter: { mode: 'both', allowlist: ['192.0.2.0/24'], denylist: ['192.0.2.1/32'] } }],
    ['a window of the default strategy', 'Source', { dedup: { windowHours: 5 } }],
    ['an empty failover', 'Route', { sourceRef: { name: 's' }, failover: {} }],
    ['a threshold of recoveries', 'Route', { sourceRef: { name: 's' }, notifications: { onRecovery: true, failureThreshold: 5 } }],
    ['a dry run', 'Replay', { what: 'messages', dryRun: true }],
  ])('%s', async (_what, kind, spec) => {
    expect(await idleFields(kind, spec)).toEqual([]);
  });
});
