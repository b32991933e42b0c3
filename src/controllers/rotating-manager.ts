import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { DestinationRecord, SourceRecord } from '../core/records.ts';
import type { ObjectMeta } from '../resources/metadata.ts';
import { isSecretReference } from '../resources/secret-use.ts';
import type { ResourceCache } from '../store/cache.ts';
import { ownersAt } from '../store/objects/field-owners.ts';
import type { CacheByKind } from '../store/reflected-caches.ts';
import type { ResourceStore } from '../store/store.ts';
import type { ControllerCaches } from './controller-caches.ts';
import { holderOfId } from './held-ids.ts';

/** The published secret waits for so long at most. */
const longestReadMs = 2000;

export interface RotatingManagerOptions {
  caches: ControllerCaches;
  store: Pick<ResourceStore, 'getMetadata'>;
  clock: Clock;
  logger: Logger;
}

type SignedKind = 'Source' | 'Destination';
type SignedRecord = Pick<SourceRecord | DestinationRecord, 'id'>;

/**
 * Returns a function that finds the field manager that rotated the signing secret of an object: of the managers of the value in the Secret and of the reference to it, the one
 * with the last change. Caches drop managedFields, so it reads the metadata of both objects from the store. It returns null when that fails or takes longer than 2 s.
 */
export function rotatingManager<K extends SignedKind>(kind: K, { caches, store, clock, logger }: RotatingManagerOptions) {
  const path = kind === 'Source' ? ['spec', 'signingSecretRef'] : ['spec', 'http', 'signingSecretRef'];
  const cacheOf: CacheByKind<SignedKind> = caches;
  const cache: ResourceCache<K> = cacheOf[kind];
  const find = async (id: string): Promise<string | null> => {
    const object = holderOfId(caches, cache, id);
    const reference = object && path.reduce<unknown>((value, field) => Object(value)[field], object);
    if (object === undefined || !isSecretReference(reference)) return null;
    const { name, namespace = '' } = object.metadata;
    const [secret, own] = await Promise.all([
      store.getMetadata('Secret', { namespace, name: reference.name }),
      store.getMetadata(kind, { namespace, name }),
    ]);
    const valueAt = (field: string) => ownersAt(managedFieldsOf(secret), [field, reference.key]);
    const owners = [...valueAt('data'), ...valueAt('stringData'), ...ownersAt(managedFieldsOf(own), path)];
    const changedAt = ({ time = '' }: { time?: string | undefined }): number => Date.parse(time) || 0;
    return owners.toSorted((one, other) => changedAt(other) - changedAt(one))[0]?.manager ?? null;
  };
  return async ({ id }: SignedRecord): Promise<string | null> => {
    const late = Promise.withResolvers<null>();
    const cancel = clock.after(longestReadMs, () => late.resolve(null));
    try {
      return await Promise.race([find(id), late.promise]);
    } catch (error) {
      logger.debug({ err: error, kind, id }, 'the manager that rotated a secret could not be read');
      return null;
    } finally {
      cancel();
    }
  };
}

function managedFieldsOf({ managedFields = [] }: ObjectMeta): NonNullable<ObjectMeta['managedFields']> {
  return managedFields;
}
