import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { type Kind, kindPath } from '../../src/resources/kinds.ts';
import type { ControlPlane } from '../support/control-plane.ts';

/** Result of the API server for an object: it as it would be stored, or the fields and the text of its error. */
export type ServerVerdict = { object: ServerObject; message?: undefined } | { object?: undefined; fields: string[]; message: string };

const serverObject = z.looseObject({ metadata: z.looseObject({ name: z.string(), resourceVersion: z.string().optional() }) });
type ServerObject = z.output<typeof serverObject>;

const failure = z.looseObject({
  message: z.string(),
  details: z.looseObject({ causes: z.array(z.looseObject({ field: z.string().optional() })).optional() }).optional(),
});

/** Requests whose refusals are answers and not errors, which is what `ControlPlane.request` makes of them. */
export class ApiClient {
  readonly #plane: ControlPlane;
  readonly #agent: Agent;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.#agent = new Agent({ connect: { ca: readFileSync(plane.caFile) } });
  }

  async send(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
    accept = 'application/json',
  ): Promise<{ status: number; body: unknown }> {
    const response = await request(this.#plane.url + path, {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#plane.token}`, accept, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // As of `ControlPlane.request`.
      headersTimeout: 60_000,
    });
    return { status: response.statusCode, body: await response.body.json() };
  }

  /** A create, or a replacement of `name`, with strict field validation and, unless `keep`, as a dry run. */
  async write(path: string, body: unknown, options: { name?: string; keep?: boolean } = {}): Promise<ServerVerdict> {
    const query = `?fieldValidation=Strict&fieldManager=test${options.keep === true ? '' : '&dryRun=All'}`;
    const [method, target] = options.name === undefined ? (['POST', path] as const) : (['PUT', `${path}/${options.name}`] as const);
    const answer = await this.send(method, target + query, body);
    if (answer.status < 300) return { object: serverObject.parse(answer.body) };
    if (answer.status !== 400 && answer.status !== 422)
      throw new Error(`${method} ${target} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    const { message, details } = failure.parse(answer.body);
    return { fields: details?.causes?.flatMap(({ field }) => field ?? []) ?? [], message };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** Path of the objects of a kind in a namespace. */
export function collectionPath(kind: Kind, namespace: string): string {
  const { root, plural, namespaced } = kindPath(kind);
  return namespaced ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`;
}

/** Path of the objects of the same kind, which need not be Posthorn's, in the same namespace. */
export function collectionOf({ apiVersion, kind, metadata }: NamedObject): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`;
  return `${root}${metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`}/${plural.toLowerCase()}`;
}

/** Creates or changes the object, with any owners of its fields. */
export function applyObject(plane: ControlPlane, object: NamedObject): Promise<unknown> {
  const path = `${collectionOf(object)}/${object.metadata.name}?fieldManager=test&force=true`;
  return plane.request('PATCH', path, object, 'application/apply-patch+yaml');
}

interface NamedObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
}
