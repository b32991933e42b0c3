/**
 * The webhook store of an organization. All keys begin with `<prefix>{wh:<organization>}:`. Each kind counts its records from 1 in the
 * order in which they are made; the numbers stand for the records everywhere.
 *
 * - `ctl` hash: the last number of each kind (`ap`, `ep`, `sb`, `ty`) that was given out, and since when `past` is complete (`webhook-fields.ts`)
 * - `ap`, `ep`, `sb` hashes: number → record of an application, endpoint, subscription (`webhook-records.ts`)
 * - `ty` hash: event type id → number, `tr` the other way
 * - `ids` hash: id of a custom resource → number; other ids name their number (`webhook-ids.ts`)
 * - `ax` hash: external id → application; `an` sorted set of `<name in lower case>\0<application>`
 * - `es` hash: endpoint → 10 bytes for each of its subscriptions: event type and number, oldest first
 * - `ls` hash: the lists of endpoints of an application and of subscriptions of an event type (`includes/webhook-lists.lua`)
 * - `v` hash: `*` and event type id → version of what matches an event, and the last changes of both (`includes/webhooks.lua`)
 * - `epoch`: of the leader that has written last what custom resources say; an older one is refused (`includes/webhooks.lua`)
 * - `mk:0`, `mk:1` hashes: mark of a request → what it has made, for a day or two (`includes/webhook-request-keys.lua`)
 * - `tf` hash: transform id → how many subscriptions name it
 * - `gone` sorted set: ids of event types and transforms that no subscription may name, by until when (`includes/webhook-deletions.lua`)
 * - `past` hash of what deleted objects were, `pt` sorted set of its fields by time (`includes/webhook-tombstones.lua`)
 * - `rot` hash: what `secret.rotated` has still to be published for (`secret-rotations.ts`)
 * - `doom` hash: applications, endpoints and event types that are deleted while what is below them still takes memory
 */
export interface WebhookKeys {
  /** What every script declares: the second never exists, so that a Cluster that moves the slot answers TRYAGAIN before a script begins. */
  readonly declared: readonly [string, string];
  readonly counters: string;
  readonly epoch: string;
  readonly customResources: string;
  readonly eventTypes: string;
  readonly versions: string;
  readonly endpoints: string;
  readonly doomed: string;
  readonly rotations: string;
  readonly all: readonly string[];
}

/**
 * What all organizations share, in the slot `{wh}`: the stream of changes with its marker and sequence (`change-stream.ts`), and `unfinished`, a
 * sorted set of organizations in which something was deleted, or a secret rotated, by when (`webhook-sweeper.ts`).
 */
export interface SharedWebhookKeys {
  readonly marker: string;
  readonly sequence: string;
  readonly changes: string;
  readonly unfinished: string;
}

export function sharedWebhookKeys(prefix: string): SharedWebhookKeys {
  const base = `${prefix}{wh}:`;
  return { marker: `${base}marker`, sequence: `${base}seq`, changes: `${base}changes`, unfinished: `${base}unfinished` };
}

const names = [
  'ctl',
  'ap',
  'ep',
  'sb',
  'ty',
  'tr',
  'ids',
  'ax',
  'an',
  'es',
  'ls',
  'v',
  'mk:0',
  'mk:1',
  'tf',
  'gone',
  'doom',
  'past',
  'pt',
  'epoch',
  'rot',
];

/** `prefix` stands before every key of the installation; `org` is the API id of the organization. */
export function webhookKeys(prefix: string, org: string): WebhookKeys {
  const base = `${prefix}{wh:${org}}:`;
  return {
    declared: [`${base}ctl`, `${base}~`],
    counters: `${base}ctl`,
    epoch: `${base}epoch`,
    customResources: `${base}ids`,
    eventTypes: `${base}ty`,
    versions: `${base}v`,
    endpoints: `${base}ep`,
    doomed: `${base}doom`,
    rotations: `${base}rot`,
    all: names.map((name) => base + name),
  };
}
