import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import type { Role, Scope } from '../../core/records.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import { configurationKinds, definitionOf, kindPath } from '../../resources/kinds.ts';
import type { AccessRequest, KubernetesAccess, KubernetesUser } from '../../store/kubernetes/kubernetes-access.ts';
import { type Caller, callerOrganization } from './caller.ts';
import { walkOrganizations } from './walk-organizations.ts';

export interface KubernetesCallersOptions {
  access: KubernetesAccess;
  registry: RegistryReader;
}

const longestToken = 8192;
const tokenShape = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** The claim of a JSON Web Token with its end, in seconds since the epoch. */
const endClaim = z.object({ exp: z.number() });
const serviceAccount = /^system:serviceaccount:([^:]+):[^:]+$/;
const keptMs = 60_000;
/** Requests whose tokens are with the API server at one time: it must not be drowned by those who send rubbish. */
const maxReviews = 64;

const resources = configurationKinds.filter((kind) => definitionOf(kind).isForAdmins !== true).map((kind) => kindPath(kind).plural);
const verbsOfScope: Readonly<Record<Scope, readonly string[]>> = { read: ['list'], write: ['create', 'patch'], delete: ['delete'] };
const scopes = Object.keys(verbsOfScope) as Scope[];

type Rights = Pick<Caller, 'role' | 'scopes'>;

/**
 * Callers with a Kubernetes token instead of an API key: the namespace is the organization, and RBAC there determines what the
 * caller may do. A scope needs its verbs on every kind that the API serves; who may also make ApiKeys is an admin. What the
 * API server replies is cached for a minute.
 */
export class KubernetesCallers {
  readonly #options: KubernetesCallersOptions;
  readonly #users = new LRUCache<string, Promise<KubernetesUser | null>>({ max: 5000, ttl: keptMs });
  readonly #rights = new LRUCache<string, Promise<Rights>>({ max: 5000, ttl: keptMs });
  /** Whether users may list the first of our resources, or the DeliveryPools, in namespaces. */
  readonly #lists = new LRUCache<string, Promise<boolean>>({ max: 5000, ttl: keptMs });
  #reviews = 0;

  constructor(options: KubernetesCallersOptions) {
    this.#options = options;
  }

  /** Whether this may be a token: an API key never looks like one. */
  static isToken(credential: string): boolean {
    return tokenShape.test(credential);
  }

  /** Expiry that a token itself states, in milliseconds since the epoch; null: none. */
  static endMs(token: string): number | null {
    try {
      const claims: unknown = parsePlainJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
      return endClaim.parse(claims).exp * 1000;
    } catch {
      return null;
    }
  }

  /**
   * `asked`: id or slug of the organization in the path; null: that of the namespace of the service account, and `anywhere` also the first one in
   * which the token has rights, of the 100 first by their slugs. UNAUTHORIZED
   * without a valid token, RESOURCE_NOT_FOUND without such an organization or any right in it, UNAVAILABLE when the API
   * server does not answer.
   */
  async caller(token: string, asked: string | null, { anywhere = false }: { anywhere?: boolean } = {}): Promise<Caller> {
    const hash = digest(token);
    const user =
      token.length > longestToken
        ? null
        : await this.#kept(this.#users, hash, { ask: () => this.#options.access.reviewToken(token), keeps: (found) => found !== null });
    if (user === null)
      throw new PosthornError('UNAUTHORIZED', 'The token is not valid here: it needs one of the audiences of this installation.');
    try {
      return await this.#callerIn(user, await this.#organization(user, asked));
    } catch (error) {
      if (!anywhere || asked !== null || !isPosthornError(error, 'RESOURCE_NOT_FOUND')) throw error;
      return await this.#callerAnywhere(user);
    }
  }

  /** Rights of a user in a namespace; null: not even read. UNAVAILABLE when the API server does not answer. */
  async rightsIn(user: KubernetesUser, namespace: string): Promise<Rights | null> {
    const key = `${namespace} ${digest(JSON.stringify(user))}`;
    // Most users have rights in few of many organizations: one review rules out the others.
    const mayList = () => this.#options.access.may(user, namespace, { verb: 'list', resource: resources[0] ?? '*' });
    if (!this.#rights.has(key) && !(await this.#kept(this.#lists, key, { ask: mayList, keeps: () => true }))) return null;
    const rights = await this.#rightsFor(user, namespace);
    return rights.scopes.includes('read') ? rights : null;
  }

  /** Whether a user may list the DeliveryPools of a namespace. UNAVAILABLE when the API server does not answer. */
  mayListPools(user: KubernetesUser, namespace: string): Promise<boolean> {
    const { plural: resource } = kindPath('DeliveryPool');
    return this.#kept(this.#lists, `${resource} ${namespace} ${digest(JSON.stringify(user))}`, {
      ask: () => this.#options.access.may(user, namespace, { verb: 'list', resource }),
      keeps: (allowed) => allowed,
    });
  }

  #rightsFor(user: KubernetesUser, namespace: string): Promise<Rights> {
    return this.#kept(this.#rights, `${namespace} ${digest(JSON.stringify(user))}`, {
      ask: () => this.#rightsOf(user, namespace),
      keeps: ({ scopes: granted }) => granted.length > 0,
    });
  }

  async #callerIn(user: KubernetesUser, organization: Caller['organization']): Promise<Caller> {
    const rights = await this.#rightsFor(user, organization.namespace);
    if (!rights.scopes.includes('read')) throw noOrganization();
    return { credential: { type: 'user', id: `usr_${digest(user.username)}`, name: user.username, user }, ...rights, organization };
  }

  /** In the first organization in which the user has rights. */
  async #callerAnywhere(user: KubernetesUser): Promise<Caller> {
    const { registry } = this.#options;
    const walk = walkOrganizations(registry, { after: null, limit: 1, see: (record) => this.rightsIn(user, record.namespace) });
    const { found, next } = await walk;
    const [first] = found;
    if (first === undefined)
      throw next === null
        ? noOrganization()
        : new PosthornError('RESOURCE_NOT_FOUND', 'The token has no rights in the first 100 organizations: name the one that it is for.');
    return await this.#callerIn(user, callerOrganization(first.record));
  }

  async #organization({ username }: KubernetesUser, asked: string | null): Promise<Caller['organization']> {
    const { registry } = this.#options;
    const namespace = serviceAccount.exec(username)?.[1];
    const wanted = asked ?? namespace;
    if (wanted === undefined)
      throw new PosthornError(
        'RESOURCE_NOT_FOUND',
        'Name the organization in the path, /api/organizations/{organization}/…, or where a session begins in its body.',
      );
    const record = await registry.get('organization', (await registry.organizationIdBySlug(wanted)) ?? wanted);
    if (record === null || record.retained !== undefined || (asked === null && record.namespace !== namespace)) throw noOrganization();
    return callerOrganization(record);
  }

  async #rightsOf(user: KubernetesUser, namespace: string): Promise<Rights> {
    const mayAll = async (requests: readonly AccessRequest[]): Promise<boolean> =>
      (await Promise.all(requests.map((request) => this.#options.access.may(user, namespace, request)))).every(Boolean);
    if (await mayAll([{ verb: '*', resource: '*' }])) return { role: 'admin', scopes };
    const allows = await Promise.all(
      scopes.map((scope) => mayAll(verbsOfScope[scope].flatMap((verb) => resources.map((resource) => ({ verb, resource }))))),
    );
    const granted = scopes.filter((_, i) => allows[i]);
    const role: Role = granted.some((scope) => scope !== 'read') ? 'developer' : 'viewer';
    const isAdmin = role === 'developer' && (await mayAll([{ verb: 'create', resource: kindPath('ApiKey').plural }]));
    return { role: isAdmin ? 'admin' : role, scopes: granted };
  }

  /** Concurrent requests share one review. A refusal is not cached: the right may be granted at any moment. */
  #kept<T>(
    cache: LRUCache<string, Promise<T>>,
    key: string,
    { ask, keeps }: { ask: () => Promise<T>; keeps: (answer: T) => boolean },
  ): Promise<T> {
    const known = cache.get(key);
    if (known !== undefined) return known;
    if (this.#reviews >= maxReviews) throw new PosthornError('UNAVAILABLE', 'Too many new tokens at once.', { retryAfterSeconds: 1 });
    this.#reviews += 1;
    const asked = ask().finally(() => {
      this.#reviews -= 1;
    });
    cache.set(key, asked);
    asked.then(
      (answer) => keeps(answer) || cache.delete(key),
      () => cache.delete(key),
    );
    return asked;
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

function noOrganization(): PosthornError {
  return new PosthornError('RESOURCE_NOT_FOUND', 'There is no such organization, or these credentials have no rights in it.');
}
