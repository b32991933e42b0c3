import { recordKinds } from '../../src/core/records.ts';
import { isSealed, type SealingContext } from '../../src/core/sealing.ts';
import { recordSealingContext, type SealedRecordField, webhookSecretSealingContext } from '../../src/core/sealing-contexts.ts';
import { RedisRegistryPublisher } from '../../src/data/registry/registry-publisher.ts';
import { RedisWebhookStore } from '../../src/data/webhooks/redis-webhook-store.ts';
import { webhookIdPrefixes } from '../../src/data/webhooks/webhook-ids.ts';
import { WebhookSweeper } from '../../src/data/webhooks/webhook-sweeper.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import { configurationKinds, type Kind, type ObjectOf } from '../../src/resources/kinds.ts';
import type { ResourceStore } from '../../src/store/store.ts';
import type { ConfigurationWorld } from './configuration-world.ts';
import { testKeyring } from './controllers.ts';
import { namespace } from './every-kind.ts';
import { silentLogger } from './logger.ts';

/** What two runs that end alike have in common: no times, no uids, secrets opened. */
export interface ConfigurationSnapshot {
  /** By `kind namespace/name`. */
  objects: Record<string, unknown>;
  /** By `record kind id`. */
  records: Record<string, unknown>;
  /** What custom resources declare in the webhook store, by id. */
  webhooks: Record<string, unknown>;
  /** Names of keys in Redis without the prefix, but for those of the installation. */
  keys: string[];
}

/** What belongs to no organization, and stays when everything is deleted (docs/architecture.md, "Redis"). */
const keysOfInstallation =
  /^(\{cfg\}:(marker|epoch|layout|seq|changes|complete|owners)|\{wh\}:(marker|seq|changes)|\{s\d+\}:ctl|\{store\}:.+)$/;

const kindsInStore: readonly Kind[] = [...configurationKinds, 'Namespace', 'Secret'];
const times = new Set(['lastTransitionTime', 'creationTimestamp', 'createdAtMs', 'updatedAtMs']);
/** Equal ends may be reached by more or fewer steps. */
const steps = new Set(['revision']);
const sealedFields: readonly SealedRecordField[] = ['signingSecrets', 'token', 'webhookUrl', 'secretAccessKey', 'value'];

export async function snapshotOf(world: ConfigurationWorld): Promise<ConfigurationSnapshot> {
  const { redis, prefix, clock, store } = world;
  // The process of the controllers does that beside them.
  await new WebhookSweeper({ redis, prefix, clock, logger: silentLogger }).sweep();
  const names = (await redis.keys(`${prefix}*`)).map((key) => key.slice(prefix.length));
  const keys = names.filter((name) => !keysOfInstallation.test(name)).sort();
  const objects = await allObjects(store);
  return { objects: partsOf(objects), records: await recordsOf(world, objects), webhooks: await webhooksOf(world), keys };
}

/** Versions of all objects, and the numbers of the last changes of a record and of a webhook object. */
export async function versionsOf({ store, redis, prefix }: ConfigurationWorld): Promise<Record<string, unknown>> {
  const [records, webhooks] = await redis.mget(`${prefix}{cfg}:seq`, `${prefix}{wh}:seq`);
  const versions: Record<string, unknown> = { records, webhooks };
  for (const object of await allObjects(store)) versions[nameOf(object)] = object.metadata.resourceVersion;
  return versions;
}

/** The organization with all that it has; a store may hold more. */
export async function allObjects(store: ResourceStore): Promise<ObjectOf<Kind>[]> {
  const pages = await Promise.all(kindsInStore.map((kind) => store.list(kind)));
  return pages.flatMap(({ items }) => items).filter(({ metadata }) => (metadata.namespace ?? metadata.name) === namespace);
}

export function nameOf({ kind, metadata: { namespace = '', name } }: ObjectOf<Kind>): string {
  return `${kind} ${namespace}/${name}`;
}

/** The value with names instead of the uids of the objects. */
function withoutUids(value: unknown, objects: readonly ObjectOf<Kind>[]): unknown {
  const text = objects.reduce((left, object) => left.replaceAll(object.metadata.uid, `uid of ${nameOf(object)}`), JSON.stringify(value));
  return JSON.parse(text);
}

function partsOf(objects: readonly ObjectOf<Kind>[]): Record<string, unknown> {
  const parts = objects.map((object) => {
    const { labels, annotations, finalizers, generation, deletionTimestamp } = object.metadata;
    const { spec, status } = { spec: undefined, status: undefined, ...object };
    const part = { labels, annotations, finalizers, generation, isBeingDeleted: deletionTimestamp !== undefined, spec, status };
    return [nameOf(object), comparable(withoutUids(part, objects), [])] as const;
  });
  return Object.fromEntries(parts);
}

async function recordsOf({ redis, prefix }: ConfigurationWorld, objects: readonly ObjectOf<Kind>[]): Promise<Record<string, unknown>> {
  const registry = new RedisRegistryPublisher(redis, prefix);
  const records: Record<string, unknown> = {};
  for (const kind of recordKinds) {
    for (const id of await registry.ids(kind)) {
      const record = await registry.get(kind, id);
      const org = record !== null && 'org' in record ? record.org : id;
      const contexts = sealedFields.map((field) => recordSealingContext(org, kind, id, field));
      records[`${kind} ${id}`] = comparable(withoutUids(record, objects), contexts);
    }
  }
  return records;
}

async function webhooksOf({ redis, prefix, clock }: ConfigurationWorld): Promise<Record<string, unknown>> {
  const webhooks = new RedisWebhookStore({ redis, prefix, clock, logger: silentLogger });
  const found: Record<string, unknown> = {};
  for (const org of await new RedisRegistryPublisher(redis, prefix).ids('organization')) {
    for (const id of await webhooks.customResourceIds(org)) {
      const read = id.startsWith(webhookIdPrefixes.application)
        ? webhooks.application(org, id)
        : id.startsWith(webhookIdPrefixes.endpoint)
          ? webhooks.endpoint(org, id)
          : webhooks.subscription(org, id);
      found[id] = comparable(await read, [webhookSecretSealingContext(org, id)]);
    }
  }
  return found;
}

/** Without what differs from run to run; conditions in the order of their types. */
function comparable(value: unknown, contexts: readonly SealingContext[]): unknown {
  if (typeof value === 'string') return isSealed(value) ? opened(value, contexts) : value;
  if (Array.isArray(value)) {
    const items = value.map((item) => comparable(item, contexts));
    return items.every((item) => isRecord(item) && typeof item['type'] === 'string' && 'observedGeneration' in item)
      ? items.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
      : items;
  }
  if (!isRecord(value)) return value;
  const members = Object.entries(value).filter(([name, member]) => member !== undefined && !times.has(name) && !steps.has(name));
  return Object.fromEntries(members.map(([name, member]) => [name, comparable(member, contexts)]));
}

function opened(envelope: string, contexts: readonly SealingContext[]): string {
  for (const context of contexts) {
    try {
      return `opened ${testKeyring.open(envelope, context)}`;
    } catch {
      // Bound to another field.
    }
  }
  throw new Error('a sealed value belongs to no field that is known here');
}
