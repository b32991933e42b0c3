import { serviceAccountKey } from '../../support/service-account.ts';

export const signingSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

const signingKey = 'whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==';

/** One of each kind of credential, throttle and flag. */
export const portableRequests: readonly object[] = [
  { name: 'Plain', slug: 'plain' },
  { name: 'Ünïcode & Co.', headers: { 'X-A': '1', 'X-B': 'two' }, method: 'PUT', timeoutMs: 5000, enabled: false },
  { name: 'Basic', authType: 'basic', authConfig: { username: 'me', password: 'a-long-password-0001' } },
  { name: 'Bearer', authType: 'bearer', authConfig: { token: 'a-long-token-0000002' }, signingSecret },
  { name: 'Key', authType: 'api_key', authConfig: { headerName: 'X-Key', key: 'a-long-key-00000003' }, retryPolicy: { maxRetries: 2 } },
  { name: 'Custom', authType: 'custom_header', authConfig: { headerName: 'X-C', headerValue: 'short' } },
  { name: 'Rated', throttle: { mode: 'rate', rateLimit: 5, rateUnit: 'minute', queueLimit: 10 } },
  { name: 'Narrow', throttle: { mode: 'concurrency', maxConcurrency: 3 } },
  { name: 'Described', description: 'Orders of the shop.\n\tBoth kinds. ', useStaticIp: true },
  { name: 'Ed25519', signingSecret: signingKey, signatureScheme: 'ed25519' },
  { name: 'Both signatures', signingSecret: `${signingSecret} ${signingKey}`, signatureScheme: 'both' },
  { name: 'Forwarding', forwardQuery: true, forwardHeaders: ['X-GitHub-Event', 'x-shop-topic'] },
  { name: 'Forwarding nothing', forwardHeaders: [] },
  { name: 'In order', ordered: true },
  {
    name: 'Templated',
    headers: { 'X-A': 'a' },
    headerTemplates: { 'X-Order': 'order {{ payload.order.id }}', 'X-B': '{{ headers.x-b }}' },
  },
  { name: 'Thin', payloadForm: 'thin' },
];

const mapping = [
  { source: '$.payload.order.id', target: 'order', type: 'string' },
  { source: '$.payload.total', target: 'total', type: 'number', default: '0' },
];
/** One of each kind of object storage. */
export const portableWarehouses: readonly object[] = [
  {
    name: 'S3',
    url: undefined,
    type: 's3',
    config: {
      bucket: 'events',
      region: 'eu-central-1',
      accessKeyId: 'AKIAEXAMPLE',
      secretAccessKey: 'a-long-secret-key-00042',
      prefix: 'in/',
    },
    fieldMapping: mapping,
    retryPolicy: { maxRetries: 3 },
  },
  {
    name: 'R2',
    url: undefined,
    type: 'r2',
    config: {
      bucket: 'events',
      endpoint: 'https://account.r2.example.com',
      accessKeyId: 'AKIAEXAMPLE',
      secretAccessKey: 'a-long-secret-key-00043',
      fileFormat: 'json',
      partitionBy: 'hour',
    },
  },
  {
    name: 'GCS',
    url: undefined,
    type: 'gcs',
    enabled: false,
    config: { bucket: 'events', projectId: 'project', serviceAccountKey: serviceAccountKey() },
  },
  {
    name: 'Azure',
    url: undefined,
    type: 'azure_blob',
    config: { accountName: 'account', containerName: 'events', accountKey: Buffer.from('a-long-secret-key-00044').toString('base64') },
  },
  {
    name: 'Platform',
    description: 'Without keys',
    url: undefined,
    type: 's3',
    config: { bucket: 'events', region: 'eu-central-1', identity: 'platform' },
  },
];
