import type { IncomingMessage, ServerResponse } from 'node:http';
import { PosthornError } from '../../core/errors.ts';
import { type AuthenticateOptions, authenticate } from './authentication.ts';
import type { Caller } from './caller.ts';
import { answerError } from './error-response.ts';
import type { Exchange } from './exchange.ts';
import type { FacadeMetrics } from './metrics.ts';
import type { Operation } from './operation.ts';
import { OperationTable } from './operation-table.ts';
import { countedAs, limitRate } from './rate-limiting.ts';
import { answerRequestId } from './request-id.ts';
import { logWhenAnswered } from './request-log.ts';
import { requestTarget } from './request-target.ts';
import { type RunOptions, runOperation } from './run-operation.ts';
import type { FacadeServices } from './services.ts';

export interface ApiOptions extends RunOptions, Omit<AuthenticateOptions, 'organization'> {
  operations: readonly Operation[];
  metrics: FacadeMetrics;
}

/** Takes the request when its path is `/api` or below, and answers whether it did. */
export type ApiHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

/** The operations, at `/api/…` and `/api/organizations/{orgId}/…`. A plain node:http handler: events of customers come this way. */
export function createApi({ operations, metrics, ...options }: ApiOptions): ApiHandler {
  const table = new OperationTable(operations);
  const { services } = options;
  return (request, response) => {
    const { path, query } = requestTarget(request.url ?? '');
    if (!path.startsWith('/api') || (path.length > 4 && path[4] !== '/')) return false;
    const requestId = answerRequestId(request, response);
    const exchange: Exchange = { request, response, requestId, path, query, caller: null, operationId: null };
    logWhenAnswered(exchange, { ...services, metrics });
    void answer(exchange, table, options).catch((thrown: unknown) => answerError(services, { response, path }, thrown));
    return true;
  };
}

const ofOrganization = /^\/organizations\/([^/]+)(.*)$/;

async function answer(exchange: Exchange, table: OperationTable, options: Omit<ApiOptions, 'operations' | 'metrics'>): Promise<void> {
  const below = exchange.path.slice('/api'.length);
  const [, organization = null, rest = below] = ofOrganization.exec(below) ?? [];
  const as = { ...options, organization };
  const caller = await identify(exchange, options.services, as);
  if (organization !== null) requireOwnOrganization(caller, organization);
  const identifyAgain = async (): Promise<Caller> => {
    const again = await authenticate(exchange.request, options.services, as);
    requireOwnOrganization(again, caller.organization.id);
    return again;
  };
  options.openRequests.enter(caller, exchange.response);
  const { operations, params } = table.find(rest);
  await runOperation(exchange, { operation: requested(exchange, operations), caller, path: rest, params, identifyAgain }, options);
}

async function identify(exchange: Exchange, services: FacadeServices, options: AuthenticateOptions): Promise<Caller> {
  const { request, response, path } = exchange;
  const caller = await authenticate(request, services, options);
  exchange.caller = caller;
  const { credential } = caller;
  if (credential.type === 'apiKey') void services.apiKeyUsage.touch(caller.organization.id, credential.id);
  await limitRate(services.rateLimiter, caller, { response, counted: countedAs(path) });
  return caller;
}

function requireOwnOrganization({ organization }: Caller, asked: string): void {
  if (asked === organization.id || asked === organization.slug) return;
  throw new PosthornError('RESOURCE_NOT_FOUND', 'There is no such organization, or these credentials have no rights in it.');
}

/** That with the method of the request; METHOD_NOT_ALLOWED names those that there are. */
function requested({ request, response }: Exchange, operations: readonly Operation[]): Operation {
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  const found = operations.find((operation) => operation.method === method);
  if (found !== undefined) return found;
  const methods = operations.map((operation) => operation.method);
  const allowed = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', ');
  response.setHeader('Allow', allowed);
  throw new PosthornError('METHOD_NOT_ALLOWED', `${request.method} is not allowed here; the path allows ${allowed}.`);
}
