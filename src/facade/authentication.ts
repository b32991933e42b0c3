import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { hashApiKey } from '../core/api-keys.ts';
import type { Clock } from '../core/clock.ts';
import { PosthornError } from '../core/errors.ts';
import type { RegistryReader } from '../data/registry.ts';
import type { Caller } from './caller.ts';
import { KubernetesCallers } from './kubernetes-callers.ts';

const longestKey = 512;

export interface Authenticators {
  registry: RegistryReader;
  clock: Clock;
  /** Null: only API keys are credentials. */
  kubernetesCallers: KubernetesCallers | null;
  /** Id or slug of the organization that the path names; null: none. */
  organization: string | null;
}

/**
 * The caller behind `Authorization: Bearer <key>` or `x-api-key: <key>`. In a cluster also a
 * token of Kubernetes: see `KubernetesCallers`. UNAUTHORIZED without a valid one, UNAVAILABLE when Redis does not answer.
 */
export async function authenticate(
  headers: IncomingHttpHeaders,
  { registry, clock, kubernetesCallers, organization: asked }: Authenticators,
): Promise<Caller> {
  const key = sentKey(headers);
  if (key === null) throw new PosthornError('UNAUTHORIZED', 'Send an API key as "Authorization: Bearer <key>" or "x-api-key: <key>".');
  if (kubernetesCallers !== null && KubernetesCallers.isToken(key)) return await kubernetesCallers.caller(key, asked);
  const sha256 = hashApiKey(key);
  const id = key.length > longestKey ? null : await registry.apiKeyIdByHash(sha256);
  const record = id === null ? null : await registry.get('apiKey', id);
  if (record === null || !equal(record.sha256, sha256)) throw new PosthornError('UNAUTHORIZED', 'The API key is not valid.');
  if (record.expiresAtMs !== null && record.expiresAtMs <= clock.now()) throw new PosthornError('UNAUTHORIZED', 'The API key has expired.');
  const organization = await registry.get('organization', record.org);
  return {
    credential: { type: 'apiKey', id: record.id },
    role: record.role,
    scopes: record.scopes,
    organization: {
      id: record.org,
      slug: record.orgSlug,
      namespace: record.namespace,
      plan: organization?.plan ?? 'enterprise',
      monthlyMessages: organization?.monthlyMessages ?? null,
      objectsPerKind: organization?.objectsPerKind ?? null,
    },
  };
}

function sentKey(headers: IncomingHttpHeaders): string | null {
  const bearer = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
  if (bearer !== undefined) return bearer;
  const other = headers['x-api-key'];
  return typeof other === 'string' && other !== '' ? other : null;
}

function equal(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
