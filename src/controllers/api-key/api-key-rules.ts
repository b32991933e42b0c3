import { compileApiKey } from '../../compile/api-key.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { byAge } from '../../resources/metadata.ts';
import { type ControllerCaches, nameIn } from '../controller-caches.ts';
import { type IdClaims, isLive, mayHaveItsId } from '../references.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

type Caches = Pick<ControllerCaches, 'ApiKey'> & IdClaims;
type ApiKey = PosthornObject<'ApiKey'>;

/**
 * An API key refers to the key that made it: without that one the API refuses it. Of several with one hash the oldest has the key that is sent; the
 * others have no record.
 */
export function apiKeyRules(caches: Caches): ResourceRules<'ApiKey'> {
  return {
    kind: 'ApiKey',
    evaluate: async (object, organization) => {
      const { name } = holderOf(caches, object).metadata;
      if (name !== object.metadata.name)
        return {
          refusal: { reason: 'KeyTaken', message: `spec.sha256 is that of the older ApiKey ${name} of this namespace, which has the key` },
          isWithdrawn: true,
        };
      return {
        ...compileApiKey(object, organization),
        ...(lacksMaker(caches, object) && {
          unresolved: { reason: 'KeyNotFound', message: 'the API key that created this one was deleted, so this one is rejected' },
        }),
      };
    },
  };
}

/** Of the keys of the namespace with the same hash, the oldest that may have a record. */
function holderOf(caches: Caches, object: ApiKey): ApiKey {
  const claiming = withHash(caches, object, object.spec.sha256).filter((each) => mayHaveItsId(caches, caches.ApiKey, each));
  return claiming.toSorted(byAge)[0] ?? object;
}

function lacksMaker(caches: Caches, object: ApiKey): boolean {
  const sha256 = object.spec.createdBy?.sha256;
  return sha256 !== undefined && withHash(caches, object, sha256).length === 0;
}

function withHash({ ApiKey }: Caches, { metadata }: ApiKey, sha256: string): ApiKey[] {
  return ApiKey.byIndex('keyHash', nameIn(metadata.namespace, sha256)).filter(isLive);
}
