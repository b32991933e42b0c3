import { createHash } from 'node:crypto';
import { base32, idAnnotation } from '../../src/core/ids.ts';
import { type ConfigurationKind, configurationKinds, kinds } from '../../src/resources/kinds.ts';
import type { ApplyObject, Key, ResourceStore } from '../../src/store/store.ts';

export const namespace = 'acme';

/** What users write. */
export type Declared = ApplyObject<ConfigurationKind | 'Secret'>;

/** A resource whose API id follows from its name, so that it is the same in every run. */
export function declared(kind: ConfigurationKind, name: string, spec: object): Declared {
  const hash = createHash('sha256').update(`${kind} ${name}`).digest().subarray(0, 16);
  const annotations = { [idAnnotation]: kinds[kind].idPrefix + base32(hash) };
  return { kind, metadata: { ...keyOf(kind, name), annotations }, spec };
}

/** Values in plain text. */
export function secret(name: string, values: Record<string, string>): Declared {
  const data = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
  return { kind: 'Secret', metadata: { namespace, name }, data };
}

export function keyOf(kind: ConfigurationKind | 'Secret', name: string): Key {
  return kind === 'Organization' ? { name } : { namespace, name };
}

export async function declare(store: ResourceStore, object: Declared): Promise<void> {
  await store.apply(object, { manager: 'test', force: true });
}

const ref = (name: string) => ({ name });
const keyIn = (name: string, key: string) => ({ name, key });
const signing = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export const organization = (spec: object = {}): Declared =>
  declared('Organization', 'acme', { namespace, plan: 'enterprise', deletionPolicy: 'Delete', ...spec });

/** One of each kind and more, in no order that would help. */
export const everything: readonly Declared[] = [
  declared('WebhookSubscription', 'paid', {
    endpointRef: ref('hooks'),
    eventTypeRef: ref('order.paid'),
    filterExpression: 'event.data.total > 10.0',
    transformRef: ref('short'),
  }),
  declared('WebhookEndpoint', 'hooks', {
    applicationRef: ref('shop'),
    url: 'https://shop.example/hooks',
    signingSecretRef: keyIn('keys', 'signing'),
  }),
  declared('WebhookApplication', 'shop', { externalId: 'customer-17' }),
  declared('WebhookEventType', 'order.paid', { name: 'order.paid', schema: '{"type":"object"}' }),
  declared('Route', 'all', {
    sourceRef: ref('orders'),
    destinationRefs: [ref('builds')],
    filterRef: ref('main'),
    schemaRef: ref('push'),
    transformRef: ref('short'),
    failover: { destinationRefs: [ref('standby')], afterAttempts: 3 },
    notifications: { onFailure: true, channelRefs: [ref('on-call')] },
  }),
  declared('Source', 'orders', { provider: 'standard-webhooks', signingSecretRef: keyIn('keys', 'signing') }),
  declared('Destination', 'builds', {
    http: {
      url: 'https://builds.example/hook',
      auth: { type: 'bearer', tokenSecretRef: keyIn('keys', 'token') },
      signingSecretRef: keyIn('keys', 'signing'),
    },
  }),
  declared('Destination', 'standby', { http: { url: 'https://standby.example/hook' } }),
  declared('Destination', 'archive', {
    type: 's3',
    s3: {
      bucket: 'acme-events',
      region: 'eu-central-1',
      accessKeyId: 'AKIAEXAMPLE',
      secretAccessKeySecretRef: keyIn('keys', 'archive'),
    },
    warehouse: { prefix: 'orders', partitionBy: 'hour' },
  }),
  declared('Filter', 'main', { conditions: [{ field: 'payload.ref', operator: 'equals', value: 'main' }] }),
  declared('Transform', 'short', { code: 'payload.id' }),
  declared('PayloadSchema', 'push', { jsonSchema: { type: 'object', required: ['ref'] } }),
  declared('NotificationChannel', 'on-call', { type: 'slack', slack: { webhookUrlSecretRef: keyIn('keys', 'slack') } }),
  // Next half a year after the clock begins: the slot does not come.
  declared('HttpCronJob', 'yearly', { schedule: '30 6 1 7 *', url: 'https://reports.example/run' }),
  declared('Replay', 'again', { what: 'deliveries', filter: { routeRef: ref('all') }, destinationRef: ref('standby') }),
  declared('ApiKey', 'ci', { sha256: sha256('first') }),
  secret('keys', { signing: signing(1), token: 'first', slack: 'https://hooks.slack.com/services/T0/B0/one', archive: 'first-key' }),
];

/** Each of them otherwise, with references that lead elsewhere, and an archive. */
export const everyObjectChanged: readonly Declared[] = [
  organization({ name: 'Acme', archive: { destinationRef: ref('archive') }, limits: { payloadBytes: 1_048_576 } }),
  declared('WebhookSubscription', 'paid', { endpointRef: ref('hooks'), eventTypeRef: ref('order.paid'), filterExpression: 'true' }),
  declared('WebhookEndpoint', 'hooks', {
    applicationRef: ref('shop'),
    url: 'https://shop.example/hooks/2',
    signingSecretRef: keyIn('keys', 'signing'),
  }),
  declared('WebhookApplication', 'shop', { externalId: 'customer-18' }),
  declared('WebhookEventType', 'order.paid', { name: 'order.paid', category: 'sales' }),
  declared('Route', 'all', { sourceRef: ref('orders'), destinationRefs: [ref('standby')], filterRef: ref('main'), priority: 5 }),
  declared('Source', 'orders', { provider: 'standard-webhooks', signingSecretRef: keyIn('keys', 'signing'), rateLimitPerMinute: 60 }),
  declared('Destination', 'standby', { http: { url: 'https://standby.example/hook/2' } }),
  declared('Filter', 'main', { conditions: [{ field: 'payload.ref', operator: 'equals', value: 'release' }] }),
  declared('Transform', 'short', { code: 'payload.number' }),
  declared('PayloadSchema', 'push', { jsonSchema: { type: 'object' } }),
  declared('NotificationChannel', 'on-call', { type: 'slack', slack: { webhookUrlSecretRef: keyIn('keys', 'slack') }, name: 'On call' }),
  declared('HttpCronJob', 'yearly', { schedule: '30 7 1 7 *', url: 'https://reports.example/run' }),
  declared('Replay', 'again', { what: 'deliveries', filter: { routeRef: ref('all') }, destinationRef: ref('standby'), suspend: true }),
  declared('ApiKey', 'ci', { sha256: sha256('second'), role: 'viewer' }),
  secret('keys', { signing: signing(2), token: 'second', slack: 'https://hooks.slack.com/services/T0/B0/two', archive: 'second-key' }),
];

/** Kinds that `everything` has not got: none. */
export const kindsMissing = configurationKinds.filter(
  (kind) => kind !== 'Organization' && !everything.some((object) => object.kind === kind),
);

/** Those of users keep the namespace of an organization that is deleted with its data. */
export async function deleteSecrets({ store }: { store: Pick<ResourceStore, 'list' | 'delete'> }): Promise<void> {
  for (const { metadata } of (await store.list('Secret', { namespace })).items)
    await store.delete('Secret', keyOf('Secret', metadata.name));
}
