import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { AddressList } from '../../core/address-list.ts';
import { hashApiKey } from '../../core/api-key-hash.ts';
import { clientAddress } from '../../core/client-address.ts';
import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { rightsWithinMakers } from '../../core/key-rights.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import type { Caller } from './caller.ts';
import type { GuessLimiter } from './guess-limiter.ts';
import { KubernetesCallers } from './kubernetes-callers.ts';

const longestKey = 512;

export interface Authenticators {
  registry: RegistryReader;
  clock: Clock;
  /** Null: only API keys are credentials. */
  kubernetesCallers: KubernetesCallers | null;
}

export interface AuthenticateOptions {
  /** Id or slug of the organization that the path names; null: none. */
  organization: string | null;
  /** Where nothing names an organization, a token may act in any one in which it has rights. */
  anywhere?: boolean;
  keyGuesses: GuessLimiter;
  /** Apart from `keyGuesses`: guessed keys do not hold up tokens. */
  tokenGuesses: GuessLimiter;
  trustedProxies: AddressList;
  /** The credential has been accepted before, so it is no guess: no limit of guesses applies. Default: false. */
  isKnown?: boolean;
}

/**
 * The caller behind `Authorization: Bearer <key>` or `x-api-key: <key>`. In a cluster also a
 * token of Kubernetes: see `KubernetesCallers`. UNAUTHORIZED without a valid one, RATE_LIMITED after too many of them from one
 * client, UNAVAILABLE when Redis does not answer.
 */
export async function authenticate(
  request: Pick<IncomingMessage, 'headers' | 'socket'>,
  authenticators: Authenticators,
  options: AuthenticateOptions,
): Promise<Caller> {
  const key = sentKey(request.headers);
  if (key === null) throw new PosthornError('UNAUTHORIZED', 'Send an API key as "Authorization: Bearer <key>" or "x-api-key: <key>".');
  return await authenticateCredential(request, key, authenticators, options);
}

/** The same for an API key or a token that the client of the request has shown otherwise. */
export async function authenticateCredential(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  key: string,
  authenticators: Authenticators,
  { organization, anywhere = false, isKnown = false, keyGuesses, tokenGuesses, trustedProxies }: AuthenticateOptions,
): Promise<Caller> {
  const address = clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], trustedProxies);
  const { kubernetesCallers } = authenticators;
  if (kubernetesCallers !== null && KubernetesCallers.isToken(key)) {
    const verify = (): Promise<Caller> => kubernetesCallers.caller(key, organization, { anywhere });
    return isKnown ? await verify() : await tokenGuesses.checkBefore(address, key, verify);
  }
  const verify = (): Promise<Caller> => callerOfKey(key, authenticators);
  return isKnown ? await verify() : await keyGuesses.checkAfter(address, verify);
}

async function callerOfKey(key: string, { registry, clock }: Authenticators): Promise<Caller> {
  const sha256 = hashApiKey(key);
  const id = key.length > longestKey ? null : await registry.apiKeyIdByHash(sha256);
  const record = id === null ? null : await registry.get('apiKey', id);
  if (record === null || !equal(record.sha256, sha256)) throw new PosthornError('UNAUTHORIZED', 'The API key is not valid.');
  const { org, name } = record;
  const rights = await rightsWithinMakers(record, async (maker) => {
    const makerId = await registry.apiKeyIdByHash(maker);
    return makerId === null ? null : await registry.getOf(org, 'apiKey', makerId);
  });
  if (rights === null) throw new PosthornError('UNAUTHORIZED', 'The API key that created this one no longer exists.');
  const { role, scopes, expiresAtMs, makers } = rights;
  if (expiresAtMs !== null && expiresAtMs <= clock.now()) throw new PosthornError('UNAUTHORIZED', 'The API key has expired.');
  const organization = await registry.get('organization', record.org);
  if (organization?.retained !== undefined) throw new PosthornError('UNAUTHORIZED', 'The organization of the API key has been deleted.');
  return {
    credential: { type: 'apiKey', id: record.id, name, sha256, expiresAtMs, makers },
    role,
    scopes,
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
