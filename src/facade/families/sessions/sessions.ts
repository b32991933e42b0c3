import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { type Session, sessionEndMs } from '../../../data/sessions/session-store.ts';
import { cursorOf, cursorText } from '../../../data/shard/cursor.ts';
import { type Call, type Family, operation } from '../../http/operation.ts';
import { cursorPageOf, cursorPagination, cursorQuery } from '../../http/pagination.ts';
import { beginSession } from '../../http/session-access.ts';
import { signInBody } from '../../http/sign-in.ts';
import { isoTime, organizationId, timestamp } from '../../records/record-fields.ts';

const id = z.string().describe('Id of the session.');
const who = z.string().describe('Name of the API key or the user.');
const role = z.enum(['admin', 'developer', 'viewer']).describe('What the caller may do at most.');
const createdAt = timestamp.describe('When it began.');
const expiresAt = timestamp.describe('When it ends unless it is used before.');
const csrfToken = z.string().describe('For the header `X-Posthorn-CSRF` of requests that are not GET or HEAD.');
const organization = z
  .object({ id: z.string().describe('Id of the organization.'), slug: z.string().describe('Slug of the organization.') })
  .describe('Where the caller acts.');

const begun = z.object({ id, organization, role, who, createdAt, expiresAt, csrfToken }).meta({ id: 'NewSession' });

const current = z
  .object({
    id: id.nullable().describe('Id of the session; null: the request has none.'),
    how: z.enum(['session', 'loopback', 'apiKey', 'token']).describe('By what the request is accepted.'),
    who: z.string().describe('Name of the API key or the user; `loopback` at the machine of standalone.'),
    role,
    scopes: z.array(z.enum(['read', 'write', 'delete'])).describe('What the caller may do.'),
    organization,
    expiresAt: timestamp.nullable().describe('When the session ends unless it is used before, or the API key; null: never.'),
    csrfToken: csrfToken
      .nullable()
      .describe('For the header `X-Posthorn-CSRF` of requests that are not GET or HEAD; null: they need none.'),
  })
  .meta({ id: 'CurrentSession' });

const record = z
  .object({
    id,
    organizationId,
    who,
    isCurrent: z.boolean().describe('Whether the request is of this session.'),
    createdAt,
    lastSeenAt: timestamp.describe('A minute exact.'),
    expiresAt,
    address: z.string().describe('Address of the client that began it.'),
    userAgent: z.string().describe('`User-Agent` of that client.'),
  })
  .meta({ id: 'Session' });

export const sessions: Family = {
  name: 'Sessions',
  noun: 'session',
  description:
    'Browsers that have logged in. The cookie `posthorn_session` replaces the credential that began the session, as long as that one is accepted; requests that are not GET or HEAD need the header `X-Posthorn-CSRF`, too.',
  operations: [
    operation({
      method: 'POST',
      path: '/sessions',
      operationId: 'createSession',
      summary: 'Log in',
      description:
        'Needs no other credential. The answer sets the cookie. The session of the cookie that the request has ends. A session ends 12 hours after its last request, after 7 days, or with its credential.',
      scope: 'read',
      signsIn: true,
      body: signInBody,
      maxBodyBytes: 16_384,
      requestExample: { credential: 'ph_mzxw6ytboi4dsnrrgq3tkojqgezdgnbvgy3tqojqgezdgnbvgy3q' },
      answer: { status: 201, description: 'The session.', schema: begun },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async ({ services, caller, client, body, sentSessionCookie: sentCookie, setSessionCookie }) => {
        const made = await beginSession(services, { caller, credential: body.credential, client, sentCookie });
        const { session } = made;
        setSessionCookie(made.cookie, Math.ceil((session.endsAtMs - services.clock.now()) / 1000));
        return {
          id: session.id,
          organization: organizationOf({ caller }),
          role: caller.role,
          who: session.who,
          createdAt: isoTime(session.createdAtMs),
          expiresAt: isoTime(sessionEndMs(session)),
          csrfToken: made.csrfToken,
        } satisfies z.input<typeof begun>;
      },
    }),
    operation({
      method: 'GET',
      path: '/sessions/current',
      operationId: 'getCurrentSession',
      summary: 'Tell who is asking',
      scope: 'read',
      answer: { status: 200, description: 'By what the request is accepted, and what it may do.', schema: current },
      handle: async (call) => {
        const { access, caller } = call;
        const session = access.session?.session ?? null;
        const { credential } = caller;
        const keyEndMs = credential.type === 'apiKey' ? credential.expiresAtMs : null;
        const endMs = session === null ? keyEndMs : sessionEndMs(session);
        return {
          id: session?.id ?? null,
          how: access.how,
          who: credential.name,
          role: caller.role,
          scopes: [...caller.scopes],
          organization: organizationOf(call),
          expiresAt: endMs === null ? null : isoTime(endMs),
          csrfToken: access.csrfToken,
        } satisfies z.input<typeof current>;
      },
    }),
    operation({
      method: 'GET',
      path: '/sessions',
      operationId: 'listSessions',
      summary: 'List sessions',
      description: 'The newest first. An admin sees those of the organization, others those of their own credential.',
      scope: 'read',
      query: z.object(cursorQuery),
      answer: { status: 200, description: 'The newest first.', schema: cursorPageOf(record) },
      handle: async (call) => {
        const { id: org } = call.caller.organization;
        const { limit, cursor } = call.query;
        const visible = (await call.services.sessions.list(org)).filter((session) => mayEnd(call, session));
        const after = cursor === undefined ? null : positionOf(cursorText(cursor, cursorScope(org)));
        const rest = after === null ? visible : visible.filter((session) => isBehind(session, after));
        const page = rest.slice(0, limit);
        const last = page.at(-1);
        const next = last === undefined || rest.length <= limit ? null : cursorOf(`${last.createdAtMs} ${last.id}`, cursorScope(org));
        return { data: page.map((session) => toRecord(session, call)), pagination: cursorPagination(next) };
      },
    }),
    operation({
      method: 'DELETE',
      path: '/sessions/current',
      operationId: 'deleteCurrentSession',
      summary: 'Log out',
      description:
        'Ends the session of the request, and clears its cookie. With the cookie of a session that has ended it is 401, and clears that.',
      scope: 'read',
      signsOut: true,
      answer: { status: 204, description: 'It is deleted and no longer accepted.' },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: logOut,
    }),
    operation({
      method: 'DELETE',
      path: '/sessions/{id}',
      operationId: 'deleteSession',
      summary: 'End a session',
      description: 'An admin may end each session of the organization, others those of their own credential.',
      scope: 'read',
      answer: { status: 204, description: 'It is deleted and no longer accepted.' },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const wanted = call.params['id'] ?? '';
        if (wanted === call.access.session?.session.id) return await logOut(call);
        const { id: org } = call.caller.organization;
        const found = await call.services.sessions.find(org, wanted);
        if (found === null || !mayEnd(call, found)) throw noSession();
        await call.services.sessions.end(org, wanted);
      },
    }),
  ],
};

async function logOut({ access: { session: own }, services, setSessionCookie }: Call): Promise<void> {
  if (own === null) throw noSession();
  await services.sessions.end(own.org, own.session.id);
  setSessionCookie(null);
}

function noSession(): PosthornError {
  return new PosthornError('RESOURCE_NOT_FOUND', 'There is no such session.');
}

function mayEnd({ caller }: Call, { credentialId }: Session): boolean {
  return caller.role === 'admin' || credentialId === caller.credential.id;
}

function organizationOf({ caller: { organization: of } }: Pick<Call, 'caller'>): { id: string; slug: string } {
  return { id: of.id, slug: of.slug };
}

function toRecord(session: Session, { access, caller }: Call): z.input<typeof record> {
  return {
    id: session.id,
    organizationId: caller.organization.id,
    who: session.who,
    isCurrent: access.session?.session.id === session.id,
    createdAt: isoTime(session.createdAtMs),
    lastSeenAt: isoTime(session.seenAtMs),
    expiresAt: isoTime(sessionEndMs(session)),
    address: session.address,
    userAgent: session.userAgent,
  };
}

interface Position {
  createdAtMs: number;
  id: string;
}

const cursorScope = (org: string): string => `sessions ${org}`;

function positionOf(text: string): Position {
  const [ms = '', after = ''] = text.split(' ');
  return { createdAtMs: Number(ms), id: after };
}

function isBehind(session: Position, after: Position): boolean {
  return session.createdAtMs < after.createdAtMs || (session.createdAtMs === after.createdAtMs && session.id > after.id);
}
