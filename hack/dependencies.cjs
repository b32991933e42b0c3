// What each folder (or file) of src/ may import: itself, and what stands beside it, with all that is inside. Lua includes keep the same table
// (hack/check-lua.ts). src/cmd/ wires, so it may use all.
const redis = ['redis', 'core'];
const shard = ['data/shard', ...redis];
/** What a family of the API may use besides: what families share, records, and the request. */
const family = ['facade/families/shared', 'facade/records', 'facade/http', 'store', 'data', 'sandbox', 'resources', 'core'];

module.exports = {
  core: [],
  redis: ['core'],
  resources: ['core'],
  compile: ['resources', 'core'],

  'data/shard': redis,
  'data/registry': shard,
  'data/membership': ['data/registry', ...shard],
  'data/queue': shard,
  'data/intake': shard,
  'data/locks': redis,
  'data/analytics': ['data/queue', ...shard],
  'data/alerts': ['data/intake', ...shard],
  'data/tasks': ['data/membership', ...shard],
  'data/cron': ['data/tasks', ...shard],
  'data/history': ['data/queue', 'data/intake', 'data/locks', 'data/registry', ...shard],
  'data/webhooks': ['data/history', 'data/analytics', 'data/queue', 'data/registry', 'data/locks', ...shard],
  'data/pools': ['data/queue', 'data/cron', 'data/tasks', ...shard],
  'data/purge': ['data/webhooks', 'data/history', 'data/pools', 'data/alerts', 'data/intake', 'data/locks', 'data/queue', ...shard],
  'data/check': ['data/webhooks', 'data/history', 'data/queue', 'data/registry', ...shard],

  store: ['redis', 'resources', 'core'],
  runtime: ['store', 'redis', 'resources', 'core'],
  sandbox: ['core'],
  schedule: ['data', 'core'],
  notify: ['data', 'core'],
  delivery: ['data', 'redis', 'sandbox', 'core'],
  ingest: ['data', 'resources', 'sandbox', 'core'],
  controllers: ['store', 'compile', 'runtime', 'data', 'sandbox', 'resources', 'core'],

  'facade/http': ['store', 'data', 'sandbox', 'resources', 'core'],
  'facade/records': ['facade/http', 'store', 'data', 'resources', 'core'],
  'facade/openapi': ['facade/records', 'facade/http', 'resources', 'core'],
  'facade/families/shared': ['facade/records', 'facade/http', 'store', 'data', 'sandbox', 'resources', 'core'],
  'facade/families/analytics': family,
  'facade/families/api-keys': family,
  'facade/families/cron-jobs': family,
  'facade/families/destinations': family,
  'facade/families/filters': family,
  'facade/families/messages': family,
  'facade/families/notification-channels': family,
  'facade/families/payload-schemas': family,
  'facade/families/routes': ['facade/families/filters', ...family],
  'facade/families/sources': family,
  'facade/families/transforms': family,
  'facade/families/webhooks/shared': family,
  'facade/families/webhooks/applications': ['facade/families/webhooks/shared', ...family],
  'facade/families/webhooks/event-types': family,
  'facade/families/webhooks/endpoints': ['facade/families/webhooks/event-types', 'facade/families/webhooks/shared', ...family],
  'facade/families/webhooks/subscriptions': ['facade/families/webhooks/event-types', 'facade/families/webhooks/shared', ...family],
  'facade/families/webhooks/messages': ['facade/families/webhooks/event-types', 'facade/families/messages', ...family],
  'facade/families/webhooks/sending': family,
  'facade/families/webhooks/analytics': [
    'facade/families/webhooks/messages',
    'facade/families/webhooks/endpoints',
    'facade/families/analytics',
    ...family,
  ],
  'facade/families/families.ts': ['facade/families', 'facade/http'],
  'facade/app.ts': ['facade', 'store', 'data', 'sandbox', 'resources', 'core'],
};
