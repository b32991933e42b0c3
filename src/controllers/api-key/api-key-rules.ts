import { compileApiKey } from '../../compile/api-key.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { type ControllerCaches, indexes, nameIn } from '../controller-caches.ts';
import { isLive } from '../references.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

/** An API key refers to the key that made it: without that one the API refuses it. */
export function apiKeyRules(caches: Pick<ControllerCaches, 'ApiKey'>): ResourceRules<'ApiKey', 'apiKey'> {
  return {
    kind: 'ApiKey',
    recordKind: 'apiKey',
    evaluate: async (object, organization) => ({
      ...compileApiKey(object, organization),
      ...(lacksMaker(caches, object) && {
        unresolved: { reason: 'KeyNotFound', message: 'the API key that created this one was deleted, so this one is rejected' },
      }),
    }),
  };
}

function lacksMaker({ ApiKey }: Pick<ControllerCaches, 'ApiKey'>, { metadata, spec }: PosthornObject<'ApiKey'>): boolean {
  const sha256 = spec.createdBy?.sha256;
  return sha256 !== undefined && !ApiKey.byIndex(indexes.keyHash, nameIn(metadata.namespace, sha256)).some(isLive);
}
