import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import type { KubernetesApi } from './kubernetes-api.ts';

const user = z.object({
  username: z.string().min(1),
  uid: z.string().optional(),
  groups: z.array(z.string()).optional(),
  extra: z.record(z.string(), z.array(z.string())).optional(),
});
const tokenReview = z.object({ status: z.object({ authenticated: z.boolean().optional(), user: user.partial().optional() }) });
const accessReview = z.object({ status: z.object({ allowed: z.boolean() }) });

/** The user that the API server finds for a token. */
export type KubernetesUser = z.output<typeof user>;

/** An action in a namespace on all objects of a resource of our group, such as `list` `routes`; `*` is any. */
export interface AccessRequest {
  verb: string;
  resource: string;
}

/** Token and access reviews of the API server. Both reject with UNAVAILABLE when it does not respond. */
export class KubernetesAccess {
  readonly #api: Pick<KubernetesApi, 'request'>;
  readonly #audiences: readonly string[];

  /** `audiences`: a token must be for one of them. */
  constructor({ api, audiences }: { api: Pick<KubernetesApi, 'request'>; audiences: readonly string[] }) {
    this.#api = api;
    this.#audiences = audiences;
  }

  /** Null: not a valid token, or not for us (authentication.k8s.io/v1 TokenReview). */
  async reviewToken(token: string): Promise<KubernetesUser | null> {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences: this.#audiences } };
    const { status } = parsed(tokenReview, await this.#api.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body }));
    return status.authenticated === true ? parsed(user, status.user) : null;
  }

  /** Whether its rights in the namespace cover the request (authorization.k8s.io/v1 SubjectAccessReview). */
  async may({ username, uid, groups, extra }: KubernetesUser, namespace: string, request: AccessRequest): Promise<boolean> {
    const resourceAttributes = { namespace, group: 'posthorn.dev', ...request };
    const spec = { user: username, uid, groups, extra, resourceAttributes };
    const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
    const answer = await this.#api.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body });
    return parsed(accessReview, answer).status.allowed;
  }
}

function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (!result.success) throw new PosthornError('INTERNAL', 'the API server answered a review with something else', { cause: result.error });
  return result.data;
}
