import { many, secretRef, specCases, text, type ValidationCase } from './case.ts';

const url = 'https://shop.example/hooks';
const { valid, invalid, validChange, invalidChange } = specCases('Destination', {});
const http = (settings: object) => ({ http: { url, ...settings } });
const auth = (settings: unknown) => http({ auth: settings });
const headers = (...list: unknown[]) => http({ headers: list });
const header = (name: string) => headers({ name, value: 'x' });
const throttle = (settings: unknown) => ({ ...http({}), throttle: settings });
const retry = (retryPolicy: unknown) => ({ ...http({}), retryPolicy });
const keys = { accessKeyId: 'AKIA', secretAccessKeySecretRef: secretRef };
const s3 = { type: 's3', s3: { bucket: 'events', region: 'eu-central-1', ...keys } };
const mapping = { source: '$.payload.id', target: 'id', type: 'string' };
const warehouse = (settings: unknown) => ({ ...s3, warehouse: settings });

const urls: ValidationCase[] = [
  valid('an http URL', { http: { url: 'http://10.0.0.1:8080' } }),
  valid('an IPv6 URL', { http: { url: 'https://[::1]:8443/a?b=c#d' } }),
  valid('a URL with a name beyond ASCII', { http: { url: 'https://bücher.example/größe' } }),
  valid('a URL of 2048 characters', { http: { url: `https://a/${text(2038)}` } }),
  invalid('a URL of 2049 characters', { http: { url: `https://a/${text(2039)}` } }, 'spec.http.url'),
  ...[
    ['another scheme', 'ftp://a.example/'],
    ['a scheme in upper case', 'HTTPS://a.example/'],
    ['no scheme', 'a.example/hooks'],
    ['no host', 'https:///hooks'],
    ['user and password', 'https://user:secret@a.example/'],
    ['a user behind a backslash', 'https://a.example\\@b.example/'],
    ['a space', 'https://a.example/a b'],
    ['a line break at its end', 'https://a.example/\n'],
    ['a port that is no number', 'https://a.example:https/'],
    ['a port of six digits', 'https://a.example:443000/'],
    ['nothing', ''],
  ].map(([what, wrong]) => invalid(`a URL with ${what}`, { http: { url: wrong } }, 'spec.http.url')),
  invalid('no URL', { http: {} }, 'spec.http.url'),
  invalid('a null URL', { http: { url: null } }, 'spec.http.url'),
  invalid('a list as URL', { http: { url: [url] } }, 'spec.http.url'),
];

const types: ValidationCase[] = [
  valid('the smallest one, with defaults', http({})),
  valid('nulls take the defaults', { type: null, enabled: null, ...http({ method: null, timeoutMs: null }) }),
  invalid('no http block', {}, 'spec.http'),
  invalid('a null http block', { http: null }, 'spec.http'),
  invalid('an unknown type', { type: 'ftp', ...http({}) }, 'spec.type'),
  valid('s3', s3),
  valid('r2', { type: 'r2', r2: { bucket: 'events', endpoint: 'https://account.r2.example', ...keys } }),
  valid('gcs', { type: 'gcs', gcs: { bucket: 'events', projectId: 'p', serviceAccountKeySecretRef: secretRef } }),
  valid('azure_blob', { type: 'azure_blob', azureBlob: { accountName: 'abc', containerName: 'abc', accountKeySecretRef: secretRef } }),
  invalid('s3 without its block', { type: 's3' }, 'spec.s3'),
  invalid('s3 with an http block', { ...s3, ...http({}) }, 'spec.http'),
  invalid('s3 with a gcs block', { ...s3, gcs: { bucket: 'events', projectId: 'p', serviceAccountKeySecretRef: secretRef } }, 'spec.gcs'),
  invalid('http with an s3 block', { ...http({}), s3: s3.s3 }, 'spec.s3'),
  invalid('http with a warehouse block', { ...http({}), warehouse: {} }, 'spec.warehouse'),
  invalid('a region that is a path', { ...s3, s3: { ...s3.s3, region: 'eu/../x' } }, 'spec.s3.region'),
  invalid('a bucket that is a path', { ...s3, s3: { ...s3.s3, bucket: '../x' } }, 'spec.s3.bucket'),
  invalid(
    'an account that is a host',
    { type: 'azure_blob', azureBlob: { accountName: 'a.evil.example', containerName: 'abc', accountKeySecretRef: secretRef } },
    'spec.azureBlob.accountName',
  ),
  invalid(
    'a container in upper case',
    { type: 'azure_blob', azureBlob: { accountName: 'abc', containerName: 'ABC', accountKeySecretRef: secretRef } },
    'spec.azureBlob.containerName',
  ),
  invalid('r2 over http', { type: 'r2', r2: { bucket: 'events', endpoint: 'http://r2.example', ...keys } }, 'spec.r2.endpoint'),
  invalid(
    's3 without an access key',
    { type: 's3', s3: { bucket: 'events', region: 'r', secretAccessKeySecretRef: secretRef } },
    'spec.s3.accessKeyId',
  ),
  invalid(
    's3 without a secret key',
    { type: 's3', s3: { bucket: 'events', region: 'r', accessKeyId: 'a' } },
    'spec.s3.secretAccessKeySecretRef',
  ),
  invalid('gcs without a key', { type: 'gcs', gcs: { bucket: 'events', projectId: 'p' } }, 'spec.gcs.serviceAccountKeySecretRef'),
  invalid(
    'azure_blob without a key',
    { type: 'azure_blob', azureBlob: { accountName: 'abc', containerName: 'abc' } },
    'spec.azureBlob.accountKeySecretRef',
  ),
  valid('s3 with the identity of the platform', { type: 's3', s3: { bucket: 'events', region: 'r' }, warehouse: { identity: 'platform' } }),
  invalid(
    'r2 with the identity of the platform',
    { type: 'r2', r2: { bucket: 'events', endpoint: 'https://account.r2.example', ...keys }, warehouse: { identity: 'platform' } },
    'spec.warehouse.identity',
  ),
  invalid(
    's3 without keys, asking for keys',
    { type: 's3', s3: { bucket: 'events', region: 'r' }, warehouse: { identity: 'keys' } },
    'spec.s3.accessKeyId',
  ),
  invalid('a bucket of 2 characters', { type: 's3', s3: { ...s3.s3, bucket: 'ab' } }, 'spec.s3.bucket'),
  valid('a bucket of 63 characters', { type: 's3', s3: { ...s3.s3, bucket: text(63) } }),
  invalid('a bucket of 64 characters', { type: 's3', s3: { ...s3.s3, bucket: text(64) } }, 'spec.s3.bucket'),
  invalid(
    'an account of 25 characters',
    { type: 'azure_blob', azureBlob: { accountName: text(25), containerName: 'abc', accountKeySecretRef: secretRef } },
    'spec.azureBlob.accountName',
  ),
  validChange('another URL', http({}), { http: { url: 'https://other.example' } }),
  validChange('a type that is left out', { type: 'http', ...http({}) }, http({})),
  invalidChange('another type', http({}), s3, 'spec.type'),
];

const httpSettings: ValidationCase[] = [
  invalid('GET', http({ method: 'GET' }), 'spec.http.method'),
  valid('the shortest deadline', http({ timeoutMs: 100 })),
  invalid('a deadline below the shortest', http({ timeoutMs: 99 }), 'spec.http.timeoutMs'),
  valid('the longest deadline', http({ timeoutMs: 60_000 })),
  invalid('a deadline above the longest', http({ timeoutMs: 60_001 }), 'spec.http.timeoutMs'),
  invalid('a deadline with a fraction', http({ timeoutMs: 1000.5 }), 'spec.http.timeoutMs'),
  invalid('an inline signing secret', http({ signingSecret: 'whsec_a' }), 'spec.http.signingSecret'),
  valid('a certificate authority', http({ tls: { caBundle: '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n' } })),
  invalid('a certificate authority that is none', http({ tls: { caBundle: 'MIIB' } }), 'spec.http.tls.caBundle'),
  invalid('an empty certificate authority', http({ tls: { caBundle: '' } }), 'spec.http.tls.caBundle'),
  valid('a client certificate with its key', http({ tls: { clientCertificateSecretRef: secretRef, clientKeySecretRef: secretRef } })),
  invalid(
    'a client certificate without its key',
    http({ tls: { clientCertificateSecretRef: secretRef } }),
    'spec.http.tls.clientKeySecretRef',
  ),
  invalid('a client key without its certificate', http({ tls: { clientKeySecretRef: secretRef } }), 'spec.http.tls.clientKeySecretRef'),
  invalid('an inline client key', http({ tls: { clientKey: 'k' } }), 'spec.http.tls.clientKey'),
  valid('a static address', http({ useStaticIp: true })),
  invalid('a static address as text', http({ useStaticIp: 'true' }), 'spec.http.useStaticIp'),
  valid('a signing secret by reference', http({ signingSecretRef: secretRef })),
  valid('headers', headers({ name: 'X-Team', value: 'shop' }, { name: 'X-Empty', value: '' }, { name: 'x!#$%', value: 'tab\tÿ' })),
  invalid('headers as an object', http({ headers: { 'X-Team': 'shop' } }), 'spec.http.headers', 'spec.http.headers.X-Team'),
  invalid('a header without a value', headers({ name: 'X-Team' }), 'spec.http.headers[0].value'),
  invalid('a header that is there twice', headers({ name: 'X-A', value: '1' }, { name: 'X-A', value: '2' }), 'spec.http.headers[1]'),
  invalid(
    'a header that is there twice in another case',
    headers({ name: 'X-A', value: '1' }, { name: 'x-a', value: '2' }),
    'spec.http.headers',
  ),
  invalid('a header name with a space', header('X Team'), 'spec.http.headers[0].name'),
  invalid('a header name with a colon', header('X-Team:'), 'spec.http.headers[0].name'),
  invalid('an empty header name', header(''), 'spec.http.headers[0].name'),
  valid('a header name of 128 characters', header(text(128))),
  invalid('a header name of 129 characters', header(text(129)), 'spec.http.headers[0].name'),
  invalid('a header value with a line break', headers({ name: 'X-A', value: 'a\r\nHost: b' }), 'spec.http.headers[0].value'),
  invalid('a header value beyond Latin-1', headers({ name: 'X-A', value: '€' }), 'spec.http.headers[0].value'),
  valid('a header value of 4096 characters', headers({ name: 'X-A', value: text(4096) })),
  invalid('a header value of 4097 characters', headers({ name: 'X-A', value: text(4097) }), 'spec.http.headers[0].value'),
  valid('50 headers', headers(...many(50, (index) => ({ name: `X-${index}`, value: '' })))),
  invalid('51 headers', headers(...many(51, (index) => ({ name: `X-${index}`, value: '' }))), 'spec.http.headers'),
  ...[
    'Host',
    'connection',
    'Content-Length',
    'transfer-encoding',
    'TE',
    'trailer',
    'upgrade',
    'keep-alive',
    'expect',
    'Proxy-Authorization',
    'webhook-id',
    'X-Posthorn-Attempt',
  ].map((name) => invalid(`the header ${name}`, header(name), 'spec.http.headers[0].name')),
  ...['Authorization', 'Content-Type', 'X-Webhook-Id', 'hosted'].map((name) => valid(`the header ${name}`, header(name))),
];

const authentication: ValidationCase[] = [
  valid('an empty auth block', auth({})),
  valid('basic', auth({ type: 'basic', username: 'a', passwordSecretRef: secretRef })),
  valid('bearer', auth({ type: 'bearer', tokenSecretRef: secretRef })),
  valid('api_key', auth({ type: 'api_key', headerName: 'X-Key', keySecretRef: secretRef })),
  valid('custom_header', auth({ type: 'custom_header', headerName: 'X-Key', headerValueSecretRef: secretRef })),
  invalid('an unknown auth type', auth({ type: 'oauth' }), 'spec.http.auth.type'),
  invalid('basic without a user', auth({ type: 'basic', passwordSecretRef: secretRef }), 'spec.http.auth.username'),
  invalid('basic without a password', auth({ type: 'basic', username: 'a' }), 'spec.http.auth.passwordSecretRef'),
  invalid('a user with a colon', auth({ type: 'basic', username: 'a:b', passwordSecretRef: secretRef }), 'spec.http.auth.username'),
  invalid('bearer without a token', auth({ type: 'bearer' }), 'spec.http.auth.tokenSecretRef'),
  invalid('api_key without a header', auth({ type: 'api_key', keySecretRef: secretRef }), 'spec.http.auth.headerName'),
  invalid('api_key without a key', auth({ type: 'api_key', headerName: 'X-Key' }), 'spec.http.auth.keySecretRef'),
  invalid('custom_header without a value', auth({ type: 'custom_header', headerName: 'X-Key' }), 'spec.http.auth.headerValueSecretRef'),
  invalid('bearer with a user', auth({ type: 'bearer', tokenSecretRef: secretRef, username: 'a' }), 'spec.http.auth.username'),
  invalid('none with a token', auth({ tokenSecretRef: secretRef }), 'spec.http.auth.tokenSecretRef'),
  invalid(
    'api_key in a refused header',
    auth({ type: 'api_key', headerName: 'Host', keySecretRef: secretRef }),
    'spec.http.auth.headerName',
  ),
  invalid('an inline token', auth({ type: 'bearer', token: 'secret' }), 'spec.http.auth.token'),
  validChange(
    'another auth type',
    auth({ type: 'bearer', tokenSecretRef: secretRef }),
    auth({ type: 'basic', username: 'a', passwordSecretRef: secretRef }),
  ),
];

const throttleAndRetry: ValidationCase[] = [
  valid('an empty throttle block', throttle({})),
  valid('a rate', throttle({ mode: 'rate', rateLimit: 1, rateUnit: 'second' })),
  valid('a concurrency', throttle({ mode: 'concurrency', maxConcurrency: 1, queueLimit: 10 })),
  invalid('a rate without a limit', throttle({ mode: 'rate', rateUnit: 'second' }), 'spec.throttle.rateLimit'),
  invalid('a rate without a unit', throttle({ mode: 'rate', rateLimit: 5 }), 'spec.throttle.rateUnit'),
  invalid('a concurrency without its limit', throttle({ mode: 'concurrency' }), 'spec.throttle.maxConcurrency'),
  invalid('a rate of 0', throttle({ mode: 'rate', rateLimit: 0, rateUnit: 'second' }), 'spec.throttle.rateLimit'),
  invalid('a rate per day', throttle({ mode: 'rate', rateLimit: 1, rateUnit: 'day' }), 'spec.throttle.rateUnit'),
  invalid('off as YAML 1.1 reads it', throttle({ mode: false }), 'spec.throttle.mode'),
  valid('an empty retry policy', retry({})),
  valid('no retries', retry({ maxRetries: 0 })),
  invalid('fewer than none', retry({ maxRetries: -1 }), 'spec.retryPolicy.maxRetries'),
  valid('25 retries', retry({ maxRetries: 25 })),
  invalid('26 retries', retry({ maxRetries: 26 }), 'spec.retryPolicy.maxRetries'),
  invalid('a first delay of 99 ms', retry({ initialDelayMs: 99 }), 'spec.retryPolicy.initialDelayMs'),
  valid('equal delays', retry({ initialDelayMs: 500, maxDelayMs: 500 })),
  invalid('a first delay above the longest', retry({ initialDelayMs: 501, maxDelayMs: 500 }), 'spec.retryPolicy.maxDelayMs'),
  invalid('a longest delay below the default of the first', retry({ maxDelayMs: 999 }), 'spec.retryPolicy.maxDelayMs'),
  invalid('a longest delay above a day', retry({ maxDelayMs: 86_400_001 }), 'spec.retryPolicy.maxDelayMs'),
  valid('a multiplier with a fraction', retry({ backoffMultiplier: 1.5 })),
  invalid('a multiplier below 1', retry({ backoffMultiplier: 0.99 }), 'spec.retryPolicy.backoffMultiplier'),
  invalid('a multiplier above 10', retry({ backoffMultiplier: 10.1 }), 'spec.retryPolicy.backoffMultiplier'),
];

const files: ValidationCase[] = [
  valid('an empty warehouse block', warehouse({})),
  valid(
    'a whole warehouse block',
    warehouse({ prefix: '', fileFormat: 'json', partitionBy: 'source', fieldMapping: [mapping, { ...mapping, default: '' }] }),
  ),
  invalid('an unknown format', warehouse({ fileFormat: 'parquet' }), 'spec.warehouse.fileFormat'),
  invalid('a mapping without a type', warehouse({ fieldMapping: [{ source: 'a', target: 'b' }] }), 'spec.warehouse.fieldMapping[0].type'),
  invalid(
    'a mapping of an unknown type',
    warehouse({ fieldMapping: [mapping, { ...mapping, type: 'date' }] }),
    'spec.warehouse.fieldMapping[1].type',
  ),
  valid('50 mappings', warehouse({ fieldMapping: many(50, () => mapping) })),
  invalid('51 mappings', warehouse({ fieldMapping: many(51, () => mapping) }), 'spec.warehouse.fieldMapping'),
  invalid('a number as default', warehouse({ fieldMapping: [{ ...mapping, default: 0 }] }), 'spec.warehouse.fieldMapping[0].default'),
  invalid('a prefix of 513 characters', warehouse({ prefix: text(513) }), 'spec.warehouse.prefix'),
];

export const destinationCases: ValidationCase[] = [...types, ...urls, ...httpSettings, ...authentication, ...throttleAndRetry, ...files];
