import { compileApiKey } from '../../compile/api-key.ts';
import type { ResourceRules } from '../resource-reconciler.ts';

/** An API key refers to nothing. */
export function apiKeyRules(): ResourceRules<'ApiKey', 'apiKey'> {
  return {
    kind: 'ApiKey',
    recordKind: 'apiKey',
    evaluate: async (object, organization) => compileApiKey(object, organization),
  };
}
