import type { IncomingMessage, ServerResponse } from 'node:http';
import { clientAddress } from '../../core/client-address.ts';
import { PosthornError } from '../../core/errors.ts';
import type { Client } from './access.ts';
import type { Caller } from './caller.ts';
import { answerError } from './error-response.ts';
import type { Exchange } from './exchange.ts';
import { type Identified, type IdentifyOptions, identify } from './identify.ts';
import type { FacadeMetrics } from './metrics.ts';
import type { Operation } from './operation.ts';
import { OperationTable } from './operation-table.ts';
import { countedAs, limitRate } from './rate-limiting.ts';
import { answerRequestId } from './request-id-header.ts';
import { logWhenAnswered } from './request-log.ts';
import { requestTarget } from './request-target.ts';
import { bodyOf, type RunOptions, runOperation } from './run-operation.ts';
import { identifyByBody } from './sign-in.ts';

export interface ApiOptions extends RunOptions, Omit<IdentifyOptions, 'organization'> {
  operations: readonly Operation[];
  metrics: FacadeMetrics;
}

/** Handles a request whose path is `/api` or below. Returns whether it did. */
export type ApiHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

/** The operations, at `/api/…` and `/api/organizations/{orgId}/…`. A plain node:http handler: events of customers come this way. */
export function createApi({ operations, metrics, ...options }: ApiOptions): ApiHandler {
  const table = new OperationTable(operations);
  const { services } = options;
  const signIn = operations.find(({ signsIn }) => signsIn === true);
  const logOut = operations.find(({ signsOut }) => signsOut === true);
  return (request, response) => {
    const { path, query } = requestTarget(request.url ?? '');
    if (!path.startsWith('/api') || (path.length > 4 && path[4] !== '/')) return false;
    const requestId = answerRequestId(request, response);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const exchange: Exchange = { request, response, requestId, path, query, ended, caller: null, sessionId: null, operationId: null };
    logWhenAnswered(exchange, { ...services, metrics });
    void answer(exchange, { table, signIn, logOut }, options)
      .catch((thrown: unknown) => answerError(services, { response, path }, thrown))
      .finally(end);
    return true;
  };
}

/** Where a token may act in any organization in which it has rights. */
const ofNoOrganization: ReadonlySet<string> = new Set(['/organizations', '/installation']);
const ofOrganization = /^\/organizations\/([^/]+)(.*)$/;

interface Served {
  table: OperationTable;
  signIn: Operation | undefined;
  logOut: Operation | undefined;
}

type AnswerOptions = Omit<ApiOptions, 'operations' | 'metrics'>;

async function answer(exchange: Exchange, { table, signIn, logOut }: Served, options: AnswerOptions): Promise<void> {
  const below = exchange.path.slice('/api'.length);
  const [, organization = null, rest = below] = ofOrganization.exec(below) ?? [];
  const isFor = (operation: Operation | undefined): operation is Operation =>
    operation !== undefined && exchange.request.method === operation.method && rest.replace(/\/$/, '') === operation.path;
  const as = { ...options, organization, anywhere: ofNoOrganization.has(rest), isLogOut: isFor(logOut) };
  const bodyBytes = isFor(signIn) ? await bodyOf(exchange, signIn, options.maxBodyBytes) : undefined;
  const identified =
    bodyBytes === undefined
      ? await identify(exchange, options.services, as)
      : await identifyByBody(exchange, bodyBytes, { services: options.services, options: as });
  const { caller } = identified;
  await admit(exchange, identified, options);
  if (organization !== null) requireOwnOrganization(caller, organization);
  const identifyAgain = async (): Promise<Caller> => {
    const again = await identify(exchange, options.services, { ...as, isRecheck: true });
    requireOwnOrganization(again.caller, caller.organization.id);
    return again.caller;
  };
  options.openRequests.enter(caller, exchange);
  const { operations, params } = table.find(rest);
  const client = clientOf(exchange, options);
  const operation = requested(exchange, operations);
  await runOperation(exchange, { operation, ...identified, client, bodyBytes, path: rest, params, identifyAgain }, options);
}

const longestUserAgent = 200;

function clientOf({ request: { headers, socket } }: Exchange, { trustedProxies }: AnswerOptions): Client {
  return {
    address: clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for'], trustedProxies),
    userAgent: (headers['user-agent'] ?? '').slice(0, longestUserAgent),
  };
}

/** Counts the request of a caller; RATE_LIMITED beyond the limit of the organization. */
async function admit(exchange: Exchange, { caller, access }: Identified, { services }: AnswerOptions): Promise<void> {
  const { response, path } = exchange;
  exchange.caller = caller;
  exchange.sessionId = access.session?.session.id ?? null;
  const { credential } = caller;
  if (credential.type === 'apiKey') void services.apiKeyUsage.touch(caller.organization.id, credential.id);
  await limitRate(services.rateLimiter, caller, { response, counted: countedAs(path) });
}

function requireOwnOrganization({ organization }: Caller, asked: string): void {
  if (asked === organization.id || asked === organization.slug) return;
  throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such organization, or these credentials have no rights in it.');
}

/** The operation of the request's method; METHOD_NOT_ALLOWED names the others. */
function requested({ request, response }: Exchange, operations: readonly Operation[]): Operation {
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  const found = operations.find((operation) => operation.method === method);
  if (found !== undefined) return found;
  const methods = operations.map((operation) => operation.method);
  const allowed = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', ');
  response.setHeader('Allow', allowed);
  throw new PosthornError('METHOD_NOT_ALLOWED', `${request.method} is not allowed here; the path allows ${allowed}.`);
}
