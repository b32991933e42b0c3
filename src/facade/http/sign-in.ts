import { z } from 'zod';
import { PosthornError } from '../../core/errors.ts';
import { authenticateCredential } from './authentication.ts';
import { parseBody, readJsonObject } from './body.ts';
import type { Exchange } from './exchange.ts';
import type { Identified, IdentifyOptions } from './identify.ts';
import type { FacadeServices } from './services.ts';

/** Body of the operation that begins a session. */
export const signInBody = z.strictObject({
  credential: z.string().min(1).max(8192).regex(/^\S+$/).describe('An API key; in a cluster also a Kubernetes token.'),
  organization: z
    .string()
    .min(1)
    .max(253)
    .optional()
    .describe(
      'Id or slug of the organization, for a token. Default: that of the key or the service account, else the first one in which the token has rights, of the 100 first by their slugs.',
    ),
});

/**
 * The sender of the request whose body has the credential. Rejects as `authenticate` does; FORBIDDEN for a request that another site has its visitor send,
 * who would then work in a session of that site's choice.
 */
export async function identifyByBody(
  { request }: Exchange,
  bodyBytes: Buffer,
  { services, options }: { services: FacadeServices; options: IdentifyOptions },
): Promise<Identified> {
  const site = request.headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw new PosthornError('FORBIDDEN', 'A page of another site cannot begin a session.');
  const { credential, organization } = parseBody(signInBody, readJsonObject(bodyBytes), {});
  const asked = options.organization ?? organization ?? null;
  const caller = await authenticateCredential(request, credential, services, { ...options, organization: asked, anywhere: true });
  if (asked !== null && asked !== caller.organization.id && asked !== caller.organization.slug)
    throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such organization, or these credentials have no rights in it.');
  return { caller, access: { how: caller.credential.type === 'user' ? 'token' : 'apiKey', session: null, csrfToken: null } };
}
