import type { z } from 'zod';
import { apiKey } from './api-key.ts';
import { apiVersion, type KindDefinition } from './definition.ts';
import { deliveryPool } from './delivery-pool.ts';
import { destination } from './destination.ts';
import { filter } from './filter.ts';
import { httpCronJob } from './http-cron-job.ts';
import type { ObjectMeta } from './metadata.ts';
import { notificationChannel } from './notification-channel.ts';
import { organization } from './organization.ts';
import { payloadSchema } from './payload-schema.ts';
import { replay } from './replay.ts';
import { route } from './route.ts';
import { source } from './source.ts';
import { transform } from './transform.ts';
import { webhookApplication } from './webhook-application.ts';
import { webhookEndpoint } from './webhook-endpoint.ts';
import { webhookEventType } from './webhook-event-type.ts';
import { webhookSubscription } from './webhook-subscription.ts';

/** The descriptor of every kind of the group, by its name. `docs/recipes.md` lists the few files beside that a new kind takes. */
export const kinds = {
  Organization: organization,
  DeliveryPool: deliveryPool,
  Source: source,
  Destination: destination,
  Route: route,
  Filter: filter,
  Transform: transform,
  PayloadSchema: payloadSchema,
  HttpCronJob: httpCronJob,
  Replay: replay,
  NotificationChannel: notificationChannel,
  ApiKey: apiKey,
  WebhookEventType: webhookEventType,
  WebhookApplication: webhookApplication,
  WebhookEndpoint: webhookEndpoint,
  WebhookSubscription: webhookSubscription,
} as const;

export type PosthornKind = keyof typeof kinds;
export const posthornKinds = Object.keys(kinds) as PosthornKind[];

/** As what all kinds have in common. */
export function definitionOf(kind: PosthornKind): KindDefinition {
  return kinds[kind];
}

/** A value for each of the kinds. */
export function byKind<K extends string, Value>(each: readonly K[], make: (kind: K) => Value): Readonly<Record<K, Value>> {
  return Object.fromEntries(each.map((kind) => [kind, make(kind)])) as Record<K, Value>;
}

type Having<Part> = { [K in PosthornKind]: (typeof kinds)[K] extends Part ? K : never }[PosthornKind];

function kindsWith<K extends PosthornKind>(isWanted: (definition: KindDefinition) => boolean): readonly K[] {
  return posthornKinds.filter((kind): kind is K => isWanted(definitionOf(kind)));
}

/** The kinds of both worlds, which define deliveries; the others configure how a cluster runs Posthorn. */
export type ConfigurationKind = Having<{ world: 'both' }>;
export const configurationKinds = kindsWith<ConfigurationKind>(({ world }) => world === 'both');

/** The kinds that the API serves, each with a cache that a `Reflector` keeps. What the others declare of webhooks is in the webhook store. */
export type ServedKind = Having<{ world: 'both'; isServed: true }>;
export const servedKinds = kindsWith<ServedKind>(({ isServed }) => isServed);

export type RecordKindOf<K extends PosthornKind> = (typeof kinds)[K]['recordKind'];

export type SpecOf<K extends PosthornKind> = z.output<(typeof kinds)[K]['spec']>;
/** Input of users: defaults may be left out. */
export type SpecInputOf<K extends PosthornKind> = z.input<(typeof kinds)[K]['spec']>;
export type StatusOf<K extends PosthornKind> = z.output<(typeof kinds)[K]['status']>;

export interface PosthornObject<K extends PosthornKind> {
  apiVersion: typeof apiVersion;
  kind: K;
  metadata: ObjectMeta;
  spec: SpecOf<K>;
  status?: StatusOf<K>;
}

/** Core Kubernetes kinds that the stores hold too, so that both worlds run the same controllers. */
export interface NamespaceObject {
  apiVersion: 'v1';
  kind: 'Namespace';
  metadata: ObjectMeta;
}
export interface SecretObject {
  apiVersion: 'v1';
  kind: 'Secret';
  metadata: ObjectMeta;
  type?: string;
  immutable?: boolean;
  /** Base64 values. */
  data?: Record<string, string>;
}

export type Kind = PosthornKind | 'Namespace' | 'Secret';

export type ObjectOf<K extends Kind> = K extends PosthornKind ? PosthornObject<K> : K extends 'Namespace' ? NamespaceObject : SecretObject;

/** Where a kind is served: what a client of the API server needs to build its paths. */
export interface KindPath {
  apiVersion: string;
  /** `/api/v1` or `/apis/<group>/<version>`. */
  root: string;
  plural: string;
  namespaced: boolean;
}

export function kindPath(kind: Kind): KindPath {
  switch (kind) {
    case 'Namespace':
      return { apiVersion: 'v1', root: '/api/v1', plural: 'namespaces', namespaced: false };
    case 'Secret':
      return { apiVersion: 'v1', root: '/api/v1', plural: 'secrets', namespaced: true };
    default: {
      const { plural, scope } = definitionOf(kind);
      return { apiVersion, root: `/apis/${apiVersion}`, plural, namespaced: scope === 'Namespaced' };
    }
  }
}
