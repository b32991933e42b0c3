import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { PosthornError } from '../../core/errors.ts';
import type { RegistryReader } from '../../data/registry/registry.ts';
import { type Caller, callerOrganization } from './caller.ts';

export interface LoopbackOptions {
  /** Slug of the organization of requests whose path names none. */
  organization: string;
  /** Whether the request comes from this machine (`isFromLoopback`). */
  isFromHere(request: IncomingMessage): boolean;
}

/** Requests without credentials from the machine on which standalone runs: they have all rights of an admin, in every organization. */
export class LoopbackAccess {
  readonly #options: LoopbackOptions;
  /** Token of this process. */
  readonly csrfToken = randomBytes(32).toString('base64url');

  constructor(options: LoopbackOptions) {
    this.#options = options;
  }

  accepts(request: IncomingMessage): boolean {
    return this.#options.isFromHere(request);
  }

  /** `asked`: id or slug of the organization in the path; null: none. RESOURCE_NOT_FOUND without such an organization. */
  async caller(registry: RegistryReader, asked: string | null): Promise<Caller> {
    const wanted = asked ?? this.#options.organization;
    const record = await registry.get('organization', (await registry.organizationIdBySlug(wanted)) ?? wanted);
    if (record === null || record.retained !== undefined) throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such organization.');
    return {
      credential: { type: 'loopback', id: 'loopback', name: 'loopback' },
      role: 'admin',
      scopes: ['read', 'write', 'delete'],
      organization: callerOrganization(record),
    };
  }
}
