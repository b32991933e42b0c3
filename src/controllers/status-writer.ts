import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../core/clock.ts';
import type { ObjectOf, PosthornKind } from '../resources/kinds.ts';
import type { Condition } from '../resources/metadata.ts';
import { replayStatusFields } from '../resources/replay.ts';
import type { ResourceCache } from '../store/cache.ts';
import { type ResourceStore, versionOf } from '../store/store.ts';
import { type ConditionInputs, conditionsOf, ownedConditions, partiallyInForce } from './conditions.ts';
import type { EventRecorder } from './event-recorder.ts';

/** Fields of a status that `posthorn-health`, `posthorn-cron` and `posthorn-replay` own. */
const foreignFields = new Set(['circuit', 'lastScheduleTime', 'nextScheduleTime', ...replayStatusFields]);

type OwnStatus = Record<string, unknown> & { conditions: Condition[] };

/** Writes what the controllers own of a status: once per change, and not at all when nothing changed. */
export class StatusWriter {
  readonly #store: Pick<ResourceStore, 'applyStatus'>;
  readonly #clock: Clock;
  readonly #recorder: EventRecorder;
  readonly #ownVersions = new Set<string>();

  constructor(options: { store: Pick<ResourceStore, 'applyStatus'>; clock: Clock; recorder: EventRecorder }) {
    this.#store = options.store;
    this.#clock = options.clock;
    this.#recorder = options.recorder;
  }

  /** Whether the change in a cache is the write under way here: no reason to reconcile again. */
  isOwnWrite(object: { metadata: { resourceVersion: string } } | undefined): boolean {
    return object !== undefined && this.#ownVersions.has(object.metadata.resourceVersion);
  }

  /**
   * Writes the verdict into the status of `object` (as the cache has it). `fields`: further status fields of the kind. Throws
   * CONFLICT when the object has changed meanwhile.
   */
  async write<K extends PosthornKind>(
    cache: ResourceCache<K>,
    object: ObjectOf<K>,
    inputs: ConditionInputs,
    fields: Record<string, unknown>,
  ): Promise<void> {
    const { name, namespace, generation } = object.metadata;
    const before = object.status?.conditions ?? [];
    const status: OwnStatus = {
      observedGeneration: generation,
      ...fields,
      conditions: conditionsOf(inputs, before, generation, this.#clock.now()),
    };
    if (isDeepStrictEqual(ownPart(object.status ?? {}), ownPart(status))) return;
    const key = namespace === undefined ? { name } : { namespace, name };
    const written = await this.#store.applyStatus(cache.kind, key, status, {
      manager: 'posthorn-status',
      force: true,
      ifVersion: versionOf(object),
      whole: withForeignPart(object.status, status),
    });
    this.#remember(cache, object, written);
    this.#announce(object, inputs, before);
  }

  /** The same; the fields that are not given stay as they are. */
  async writeConditions<K extends PosthornKind>(
    cache: ResourceCache<K>,
    object: ObjectOf<K>,
    inputs: ConditionInputs,
    fields: Record<string, unknown>,
  ): Promise<void> {
    const { conditions, observedGeneration, ...kept } = object.status ?? {};
    const own = Object.entries(kept).filter(([name]) => !foreignFields.has(name));
    await this.write(cache, object, inputs, { ...Object.fromEntries(own), ...fields });
  }

  /**
   * Puts the store's response into the cache, so that the next reconcile does not see the status of before. Only while the cache
   * still has what this write was based on: a later state must not be overwritten, as no watch would bring it again.
   */
  #remember<K extends PosthornKind>(cache: ResourceCache<K>, base: ObjectOf<K>, written: ObjectOf<K>): void {
    if (cache.get(base.metadata)?.metadata.resourceVersion !== base.metadata.resourceVersion) return;
    this.#ownVersions.add(written.metadata.resourceVersion);
    cache.upsert(written);
    this.#ownVersions.delete(written.metadata.resourceVersion);
  }

  #announce<K extends PosthornKind>(object: ObjectOf<K>, { ready, warnings = [] }: ConditionInputs, before: readonly Condition[]): void {
    for (const [type, { message }] of warnings)
      if (!before.some((last) => last.type === type && last.message === message))
        this.#recorder.record({ object, type: 'Warning', reason: type, message });
    const last = before.find(({ type }) => type === 'Ready');
    const isNews = last === undefined ? ready.status !== 'True' : last.status !== ready.status || last.reason !== ready.reason;
    if (!isNews) return;
    const isWell = ready.status === 'True' && ready.reason !== partiallyInForce;
    this.#recorder.record({ object, type: isWell ? 'Normal' : 'Warning', reason: ready.reason, message: ready.message });
  }
}

function ownPart(status: Record<string, unknown> & { conditions?: readonly Condition[] }): Record<string, unknown> {
  const fields = Object.entries(status).filter(([name, value]) => !foreignFields.has(name) && value !== undefined);
  const conditions = (status.conditions ?? [])
    .filter(({ type }) => ownedConditions.has(type))
    .sort((one, other) => (one.type < other.type ? -1 : 1));
  return { ...Object.fromEntries(fields), conditions };
}

/** The whole status: what others own of it stays as it is. */
function withForeignPart(before: Record<string, unknown> & { conditions?: readonly Condition[] } = {}, own: OwnStatus): OwnStatus {
  const fields = Object.entries(before).filter(([name]) => foreignFields.has(name));
  const conditions = (before.conditions ?? []).filter(({ type }) => !ownedConditions.has(type));
  return { ...Object.fromEntries(fields), ...own, conditions: [...own.conditions, ...conditions] };
}
