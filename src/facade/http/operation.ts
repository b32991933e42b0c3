import type { z } from 'zod';
import type { ErrorCode } from '../../core/errors.ts';
import type { LoopTurn } from '../../core/loop-turns.ts';
import type { Scope } from '../../core/records.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { Access, Client } from './access.ts';
import { type FieldCodes, parseBody, parseRecords } from './body.ts';
import type { Caller } from './caller.ts';
import type { Idempotency } from './idempotency.ts';
import { parseQuery } from './query.ts';
import type { FacadeServices, ServedKind } from './services.ts';

/** Where something is done: for a request, or to finish what one has left. */
export interface CallContext {
  services: Omit<FacadeServices, 'inForceTimeoutMs'>;
  caller: Pick<Caller, 'organization'>;
}

/** Arguments of an operation. `params` are the `{…}` of its path; `Query` and `Body` are what its schemas made of the input. */
export interface Call<Query = unknown, Body = unknown> extends CallContext {
  services: FacadeServices;
  caller: Caller;
  access: Access;
  client: Client;
  params: Readonly<Record<string, string>>;
  query: Query;
  body: Body;
  /** The body as it was sent; empty when there was none. */
  bodyBytes: Buffer;
  /** Between the pieces of long work. */
  turn: LoopTurn;
  /** Aborted when the client hangs up before the answer; never with an Idempotency-Key, whose answer is kept. What has not changed anything yet ends then. */
  signal: AbortSignal;
  /** The `Last-Event-ID` of a client that comes back to a stream; null: none. */
  lastEventId: string | null;
  /** The header `x-posthorn-hop` of the request (`core/hops.ts`). */
  sentHop: string | string[] | undefined;
  /** Validates the credentials of the request again; rejects as the request would be refused. */
  recheck(): Promise<void>;
  /** Whether the response is YAML: the operation `offersYaml` and the client accepts it. */
  wantsYaml: boolean;
  /** Entity tags that the request takes for the record to change or delete; null: any. */
  ifMatch: readonly string[] | null;
  /** The answer has this as its `ETag` (`entity-tags.ts`), where the operation is versioned. */
  setEntityTag(tag: string): void;
  /** null without an Idempotency-Key. */
  idempotency: Idempotency | null;
  /** Where senders reach ingest, such as `https://hooks.example.com`; undefined: it is not configured. */
  publicIngestUrl: string | undefined;
  /** To be awaited before so many bytes of payloads are read: see `RequestMemory`. */
  hold(bytes: number): Promise<void>;
  /** Counts so many requests more against the rate limit of the organization; RATE_LIMITED beyond it, and then none. */
  charge(requests: number): Promise<void>;
  /** Adds a `Warning: 199 - "<text>"` header to the answer; `text` is fixed words, nothing that was sent. */
  warn(text: string): void;
  /** The value of the cookie of a session in the request; null: it has none. */
  sentSessionCookie: string | null;
  /** The answer sets the cookie of a session. `value` null: the browser forgets it. */
  setSessionCookie(value: string | null, maxAgeSeconds?: number): void;
  /** Responds with the operation's other status. */
  answerOtherwise(): void;
}

/** One method of one path: everything that routing, validation, authorization and the OpenAPI document are made from. */
export interface OperationDefinition<Query extends z.ZodObject, Body extends z.ZodObject> {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api`, parameters as `{id}`. */
  path: string;
  /** Unique; the name of the method in generated clients. */
  operationId: string;
  summary: string;
  description?: string;
  scope: Scope;
  adminOnly?: boolean;
  query?: Query;
  body?: Body;
  /** Fields of the record that are ignored when they are sent back. */
  readOnly?: readonly string[];
  fieldCodes?: FieldCodes;
  /** Limit of the body, where it may be larger than others. */
  maxBodyBytes?: number;
  /** Field of the body that holds any JSON (`refuseHostileShapes`). */
  freeField?: string;
  /** Field of the body that is a list of very many records, which are validated in chunks. */
  records?: string;
  requestExample?: unknown;
  /** 204 has no `schema`, and neither have `bytes`. */
  answer: {
    status: 200 | 201 | 204;
    description: string;
    schema?: z.ZodType;
    example?: unknown;
    /** Another success, of the same schema: see `Call.answerOtherwise`. */
    otherwise?: { status: 200 | 201; description: string };
    /** Describes a `StreamedAnswer` of bytes. */
    bytes?: string;
    /** Describes a `StreamedAnswer` of Server-Sent Events. It stays open. */
    events?: { description: string; example: string };
    /** Another type in which a `StreamedAnswer` may be. */
    otherContent?: { type: 'text/csv'; description: string; example: string };
  };
  /** Description of the text response to `Accept: application/yaml`. */
  offersYaml?: { description: string; makeExample: () => string };
  /** Begins a session: its body has the credential, as `signInBody` (`sign-in.ts`), and the request needs no other. */
  signsIn?: true;
  /** Ends the session of the request; one that has ended already is cleared from the browser. */
  signsOut?: true;
  /** Its answer has the version of the record as its `ETag`; a change or a deletion takes that as `If-Match`. */
  isVersioned?: true;
  /** Counts as a scan (`open-requests.ts`), though it is no list. */
  isScan?: true;
  /** `handle` is itself idempotent per Idempotency-Key for 24 hours: it returns the stored result. Refusals are not stored. */
  answersAgain?: boolean;
  /** Needs more than the scope `read` and changes nothing all the same. */
  looksOnly?: true;
  /** Missing object of RESOURCE_NOT_FOUND, where that is no record of the family. */
  noun?: string;
  /** Codes beyond those that every operation can answer. */
  errors?: readonly ErrorCode[];
  handle(call: Call<z.output<Query>, z.output<Body>>): Promise<unknown>;
}

export interface Operation extends Omit<OperationDefinition<z.ZodObject, z.ZodObject>, 'handle'> {
  /** Validates the raw query and body, then handles. */
  run(call: Call<Record<string, unknown>, unknown>): Promise<unknown>;
}

/** How a family validates a change of one of its records that custom resources keep. Writes nothing. */
export interface ChangePlan {
  kind: ServedKind;
  /** The object that the path names, and its spec after a PATCH with this body. Field owners are ignored. Rejects with every other error of the PATCH. */
  validate(call: Call, body: unknown): Promise<{ current: PosthornObject<ServedKind>; spec: object }>;
}

/** Resource families are lists of these: see `resource-family.ts` for those that are custom resources. */
export interface Family {
  /** Heading in the OpenAPI document. */
  name: string;
  description: string;
  /** Name of one record, such as `route`. */
  noun: string;
  operations: readonly Operation[];
  /** Absent: no custom resource keeps its records, or nothing of them changes. */
  changes?: ChangePlan;
  /** Common fields of several of its records: a schema with an id, to which the OpenAPI document refers. */
  common?: readonly z.ZodObject[];
  /** Fields of a record as the examples of answers show them; what is missing comes from the schemas. */
  shown?: Readonly<Record<string, unknown>>;
}

/** Whether an Idempotency-Key is heeded; where nothing changes, none is needed. */
export const takesIdempotencyKey = ({ method, scope, looksOnly }: Pick<Operation, 'method' | 'scope' | 'looksOnly'>): boolean =>
  method === 'POST' && scope !== 'read' && looksOnly !== true;

/** Whether `If-Match` is heeded. */
export const takesIfMatch = ({ method, isVersioned }: Pick<Operation, 'method' | 'isVersioned'>): boolean =>
  isVersioned === true && method !== 'GET';

/** Closes over the schemas, so that `handle` is typed and a list of operations is not generic. */
export function operation<Query extends z.ZodObject, Body extends z.ZodObject>(definition: OperationDefinition<Query, Body>): Operation {
  const { handle, ...rest } = definition;
  const { body: schema, records } = definition;
  return {
    ...rest,
    run: async (call) => {
      const query = parseQuery(definition.query, call.query);
      if (schema === undefined || records === undefined)
        return await handle({ ...call, query, body: parseBody(schema, call.body, definition) });
      return await handle({
        ...call,
        query,
        body: await call.turn.run(parseRecords(schema, call.body, { ...definition, records }), call.signal),
      });
    },
  };
}
