import type { Refusal } from '../compile/compiled.ts';
import { destinationRefusal } from '../compile/destination.ts';
import { type ConfigurationKind, configurationKinds, type PosthornKind, type PosthornObject, type SpecOf } from '../resources/kinds.ts';
import type { Condition } from '../resources/metadata.ts';
import { namespaceOf, namesReferredTo, targetsOf } from '../resources/references.ts';
import type { CacheByKind } from '../store/reflected-caches.ts';
import type { Key } from '../store/store.ts';
import type { ControllerCaches } from './controller-caches.ts';
import { referenced } from './held-ids.ts';
import { earlierInForce } from './programmed-condition.ts';

/**
 * State of a referenced object. `earlier`: it is not ready, and an earlier generation is still programmed. `notReady`: no generation is programmed, or the
 * programmed one does not serve. `unseen`: it has no status yet.
 */
export type ReferenceState =
  | { state: 'ready' | 'unseen'; reason?: undefined }
  /** `reason`: of its condition Ready. */
  | { state: 'earlier' | 'notReady'; reason: string };

export function referenceStateOf({ status }: { status?: { conditions?: Condition[] | undefined } | undefined }): ReferenceState {
  const condition = (wanted: string): Condition | undefined => status?.conditions?.find(({ type }) => type === wanted);
  const ready = condition('Ready');
  if (ready === undefined) return { state: 'unseen' };
  if (ready.status === 'True') return { state: 'ready' };
  return { state: condition('Programmed')?.reason === earlierInForce ? 'earlier' : 'notReady', reason: ready.reason };
}

/** A reference to what does not exist, is refused for its spec alone, or is not ready. */
export interface UnreadyReference {
  kind: ConfigurationKind;
  name: string;
  state: 'missing' | 'refused' | Exclude<ReferenceState['state'], 'ready'>;
  reason: string;
  /** When it was made; absent where it is missing. */
  createdAtMs?: number;
}

/** References of the object that are not ready, in the order of the kinds and then of the references. */
export function unreadyReferences(caches: ControllerCaches, object: PosthornObject<PosthornKind>): UnreadyReference[] {
  const key = { namespace: namespaceOf(object) };
  const targets: readonly PosthornKind[] = targetsOf(object.kind);
  return configurationKinds
    .filter((kind) => targets.includes(kind))
    .flatMap((kind) => namesReferredTo(object, kind).flatMap((name) => unreadyReference(caches, kind, { ...key, name })));
}

function unreadyReference<K extends ConfigurationKind>(caches: ControllerCaches, kind: K, key: Key): UnreadyReference[] {
  const { name } = key;
  const cacheOf: CacheByKind<ConfigurationKind> = caches;
  const object: PosthornObject<ConfigurationKind> | undefined = referenced(caches, cacheOf[kind], key);
  if (object === undefined) return [{ kind, name, state: 'missing', reason: '' }];
  const createdAtMs = Date.parse(object.metadata.creationTimestamp);
  const refusal = refusalBySpec(object);
  if (refusal !== null) return [{ kind, name, state: 'refused', reason: refusal.reason, createdAtMs }];
  const { state, reason = 'no status yet' } = referenceStateOf(object);
  return state === 'ready' ? [] : [{ kind, name, state, reason, createdAtMs }];
}

/** The reason before the object has a status. */
function refusalBySpec({ kind, spec }: PosthornObject<ConfigurationKind>): Refusal | null {
  return kind === 'Destination' ? destinationRefusal(spec as SpecOf<'Destination'>) : null;
}

const complaints = [
  { suffix: 'NotFound', text: 'do not exist', states: ['missing'] },
  { suffix: 'NotAccepted', text: 'are not accepted', states: ['refused'] },
  { suffix: 'NotReady', text: 'are not ready', states: ['notReady', 'unseen', 'earlier'] },
] as const;

/** The message of the condition ResolvedRefs: the worst comes first, and gives the reason. */
export function complaintsAbout(unready: readonly UnreadyReference[]): Refusal[] {
  return complaints.flatMap(({ suffix, text, states }) =>
    configurationKinds.flatMap((kind): Refusal[] => {
      const these = unready.filter((each) => each.kind === kind && states.some((state) => state === each.state));
      if (these.length === 0) return [];
      const names = these.map(({ name, reason }) => (reason === '' ? name : `${name} (${reason})`));
      return [{ reason: `${reasonName(kind)}${suffix}`, message: `${kind}s that ${text}: ${names.join(', ')}` }];
    }),
  );
}

/** Names of kinds in reasons: `Channel` for NotificationChannel, `EventType` for WebhookEventType. */
function reasonName(kind: ConfigurationKind): string {
  return kind.replace(/^(Webhook|Notification)/, '');
}

/** Whether the object works as it should although these are not ready: of each of them, an earlier generation is in force. */
export function allHaveEarlierGeneration(unready: readonly UnreadyReference[]): boolean {
  return unready.every(({ state }) => state === 'earlier');
}
