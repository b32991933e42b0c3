import express, { type Request, type RequestHandler, type Response, Router } from 'express';
import { canonicalJson } from '../core/canonical-json.ts';
import { PosthornError } from '../core/errors.ts';
import { authorize } from './authorization.ts';
import { readJsonObject } from './body.ts';
import type { Caller } from './caller.ts';
import { type Answer, answerOnce, type Idempotency } from './idempotency.ts';
import type { Operation } from './operation.ts';
import type { FacadeServices } from './services.ts';
import { StreamedAnswer, sendStreamed } from './streamed-answer.ts';

export interface OperationRouterOptions {
  services: FacadeServices;
  /** Where clients reach the API; absent: what their Host header says. */
  publicUrl?: string;
  maxBodyBytes: number;
}

/** Routes the operations. The caller stands in `response.locals.caller` (see `app.ts`). A known path with another method is 405. */
export function operationRouter(operations: readonly Operation[], options: OperationRouterOptions): Router {
  const router = Router({ caseSensitive: true });
  for (const [path, ofPath] of byPath(operations)) {
    const route = router.route(path.replaceAll(/\{(\w+)\}/g, ':$1'));
    for (const operation of ofPath) {
      const steps = readsBody(operation) ? [requireJson, readBody(operation.maxBodyBytes ?? options.maxBodyBytes)] : [];
      route[verb(operation)](before(operation), ...steps, run(operation, options));
    }
    route.all(methodNotAllowed(ofPath));
  }
  return router;
}

/** That of a POST that takes none is read to be refused: who sends fields wants something of them. */
function readsBody({ method, body }: Operation): boolean {
  return body !== undefined || method === 'POST';
}

const noBytes = Buffer.alloc(0);

function readBody(limit: number): RequestHandler {
  return express.raw({ type: () => true, limit });
}

function verb({ method }: Operation): 'get' | 'post' | 'put' | 'patch' | 'delete' {
  switch (method) {
    case 'GET':
      return 'get';
    case 'POST':
      return 'post';
    case 'PUT':
      return 'put';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return 'delete';
    default:
      return method satisfies never;
  }
}

/** Fixed paths before those with parameters, which would catch them. */
function byPath(operations: readonly Operation[]): [string, Operation[]][] {
  const groups = Object.entries(Object.groupBy(operations, (operation) => operation.path));
  const parameters = (path: string): number => path.split('{').length;
  return groups
    .map(([path, group]): [string, Operation[]] => [path, group ?? []])
    .sort(([one], [other]) => parameters(one) - parameters(other));
}

function before(operation: Operation): RequestHandler {
  return (_request, response, next) => {
    response.locals['operationId'] = operation.operationId;
    authorize(callerOf(response), operation);
    next();
  };
}

/** Of JSON and YAML; neither of them when the client accepts neither. */
function preferred(request: Request): string {
  return request.accepts(['application/json', ...yamlTypes]) || '';
}

const yamlTypes = ['application/yaml', 'application/x-yaml', 'text/yaml'];

const jsonType = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const otherCharset = /;\s*charset\s*=\s*(?!"?utf-?8"?\s*(?:;|$))/i;

const requireJson: RequestHandler = (request, _response, next) => {
  const hasBody = request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0;
  const type = request.headers['content-type'] ?? '';
  if (hasBody && (!jsonType.test(type) || otherCharset.test(type))) {
    throw new PosthornError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json in UTF-8.');
  }
  next();
};

function run(operation: Operation, { services, publicUrl }: OperationRouterOptions): RequestHandler {
  return async (request: Request, response: Response) => {
    const caller = callerOf(response);
    const bodyBytes = Buffer.isBuffer(request.body) ? request.body : noBytes;
    const body = readJsonObject(bodyBytes);
    const streamed: StreamedAnswer[] = [];
    const perform = async (idempotency: Idempotency | null): Promise<Answer> => {
      const warnings = new Set<string>();
      let status: number = operation.answer.status;
      const wantsYaml = operation.offersYaml !== undefined && yamlTypes.includes(preferred(request));
      const answer = await operation.run({
        services,
        caller,
        params: Object.fromEntries(Object.entries(request.params).map(([name, value]) => [name, String(value)])),
        query: { ...request.query },
        body,
        bodyBytes,
        wantsYaml,
        idempotency,
        baseUrl: publicUrl ?? `${request.protocol}://${request.headers.host ?? 'localhost'}`,
        warn: (text) => void warnings.add(`199 - "${text}"`),
        answerOtherwise: () => {
          status = operation.answer.otherwise?.status ?? status;
        },
      });
      if (answer instanceof StreamedAnswer) streamed.push(answer);
      return {
        status,
        headers: {
          ...(warnings.size > 0 && { Warning: [...warnings] }),
          ...(wantsYaml && { 'Content-Type': 'application/yaml; charset=utf-8' }),
          ...(operation.offersYaml !== undefined && { Vary: 'Accept' }),
        },
        body: operation.answer.status === 204 ? null : wantsYaml ? String(answer) : JSON.stringify(answer),
      };
    };
    const key = operation.method === 'POST' ? request.get('idempotency-key') : undefined;
    const equalRequest = (): string => canonicalJson([request.path, request.query, body]);
    const answer = key === undefined ? await perform(null) : await answerOnce({ services, caller, key, request: equalRequest() }, perform);
    const [pieces] = streamed;
    if (pieces === undefined) send(response, answer);
    else await sendStreamed(response, pieces, answer.status);
  };
}

function send(response: Response, { status, headers, body }: Answer): void {
  response.status(status);
  if (body !== null) response.type('json');
  response.set(headers);
  if (body === null) response.end();
  else response.send(body);
}

function methodNotAllowed(operations: readonly Operation[]): RequestHandler {
  const methods = operations.map((operation) => operation.method);
  const allowed = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', ');
  return (request, response) => {
    response.set('Allow', allowed);
    throw new PosthornError('METHOD_NOT_ALLOWED', `${request.method} is not possible here; possible are ${allowed}.`);
  };
}

function callerOf(response: Response): Caller {
  const { caller } = response.locals as { caller?: Caller };
  if (caller === undefined) throw new Error('an operation was reached without authentication');
  return caller;
}
