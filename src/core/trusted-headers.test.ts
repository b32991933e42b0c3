import { expect, test } from '@jest/globals';
import { isKeptHeader } from './kept-headers.ts';

/** By the product: what it sends with its events, and what servers behind it believe. */
test.each<[product: string, data: string[], believed: string[]]>([
  [
    'Azure',
    ['X-MS-Client-Tracking-Id', 'X-MS-Client-Request-Id', 'X-MS-Client-Session-Type', 'X-MS-Workflow-Run-Id', 'X-MS-Correlation-Id'],
    ['X-MS-Client-Principal', 'X-MS-Client-Principal-IdP', 'X-MS-Client-IP', 'X-MS-Client-Cert', 'X-MS-Client-Certificate'],
  ],
  [
    'Google Pub/Sub and Google Cloud',
    [
      'X-Goog-PubSub-Subscription-Name',
      'X-Goog-PubSub-Message-Id',
      'X-Goog-PubSub-Publish-Time',
      'X-Goog-PubSub-Ordering-Key',
      'X-Google-PubSub-Subscription-Name',
      'X-Google-PubSub-Message-Id',
      'X-Goog-Message-Number',
    ],
    ['X-Google-Apps-Metadata', 'X-Google-Internal-SkipAdminCheck', 'X-Google-Real-IP', 'X-Goog-IAP-JWT-Assertion', 'X-Goog-User-Project'],
  ],
  [
    'AWS',
    ['X-Amzn-Trace-Id', 'X-Amzn-RequestId', 'X-Amz-Sns-Message-Id', 'X-Amz-Sns-Topic-Arn', 'X-Amz-Firehose-Request-Id'],
    ['X-Amzn-Oidc-Data', 'X-Amzn-Mtls-Clientcert', 'X-Amzn-Tls-Version', 'X-Amzn-Remapped-Host'],
  ],
  ['Envoy', ['X-Request-Id', 'X-B3-TraceId'], ['X-Envoy-Internal', 'X-Envoy-Original-Path', 'X-Envoy-Decorator-Operation']],
  ['Fly and Kong', ['Fly-Request-Id', 'X-Kong-Request-Id'], ['Fly-Client-IP', 'X-Kong-Upstream-Latency', 'Fly-Forwarded-Proto']],
  ['Akamai and Fastly', ['Akamai-Request-Id', 'Fastly-Trace-Id'], ['Akamai-Origin-Hop', 'Fastly-Client']],
  [
    'queues that keep what came first',
    ['X-Original-Message-Id', 'X-Original-Event-Type'],
    ['X-Original-URL', 'X-Original-Host', 'X-Original-Method'],
  ],
  ['analytics', ['X-Anonymous-Id', 'X-Segment-Event-Id'], ['X-Anonymous-Consumer']],
  [
    'products where any name may be a claim',
    [],
    ['X-Hasura-Role', 'X-Hasura-Event-Id', 'X-JWT-Claim-Delivery-Id', 'OIDC-Claim-Message-Id'],
  ],
])('the data of an event is kept of %s, and what receivers believe is not', (_product, data, believed) => {
  expect([...data, ...believed].filter((name) => isKeptHeader(name))).toEqual(data);
});
