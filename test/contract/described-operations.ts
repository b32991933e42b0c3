import { isRecord } from '../../src/resources/field-tree.ts';

export type Schema = Record<string, unknown>;

/** One operation, as the OpenAPI document describes it to a client. */
export interface DescribedOperation {
  id: string;
  method: string;
  /** Below `/api`, parameters as `{id}`. */
  path: string;
  /** Without an API key it is refused. */
  needsKey: boolean;
  query: Schema;
  body: Schema | null;
  bodyExamples: unknown[];
  answers: ReadonlyMap<number, DescribedAnswer>;
  /** The answer of every other status. */
  otherwise: DescribedAnswer;
}

export interface DescribedAnswer {
  /** By media type; empty when there is no body. */
  content: ReadonlyMap<string, Schema>;
  /** Codes of errors documented with an example. */
  codes: readonly string[];
}

/** The document with what its paths refer to, but for schemas, inlined. */
export function withReferents(document: Schema): Schema {
  const components = members(document['components']);
  const inPlace = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inPlace);
    if (!isRecord(value)) return value;
    const reference = value['$ref'];
    const [, section = '', name = ''] = typeof reference === 'string' ? (/^#\/components\/(\w+)\/(.+)$/.exec(reference) ?? []) : [];
    if (section === '' || section === 'schemas')
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, inPlace(each)]));
    const referent = members(components[section])[name];
    if (referent === undefined) throw new Error(`there is no ${reference}`);
    return inPlace(referent);
  };
  return { ...document, paths: inPlace(document['paths']) };
}

/** Everything that the document describes below `/api`, in its order. */
export function describedOperations(document: Schema): DescribedOperation[] {
  return operationsOf(withReferents(document), (item) => item['servers'] === undefined);
}

/** What it describes on servers of its own, without a key: ingest, and the links of thin events. */
export function keylessOperations(document: Schema, path: '/ingest/{orgSlug}/{sourceSlug}' | '/payload'): DescribedOperation[] {
  return operationsOf(withReferents(document), (item, its) => item['servers'] !== undefined && its === path);
}

function operationsOf(document: Schema, isMeant: (item: Schema, path: string) => boolean): DescribedOperation[] {
  return Object.entries(members(document['paths'])).flatMap(([path, value]) => {
    const { servers: _, parameters: __, description: ___, ...byMethod } = members(value);
    const operations = Object.entries(byMethod).map(([method, operation]) => described(method.toUpperCase(), path, members(operation)));
    return isMeant(members(value), path) ? operations : [];
  });
}

function described(method: string, path: string, operation: Schema): DescribedOperation {
  const parameters = list(operation['parameters']).map(members);
  const properties = parameters
    .filter((parameter) => parameter['in'] === 'query')
    .map((parameter) => [String(parameter['name']), parameter['schema']] as const);
  const json = members(members(members(operation['requestBody'])['content'])['application/json']);
  return {
    id: String(operation['operationId']),
    method,
    path,
    needsKey: operation['security'] === undefined,
    query: { type: 'object', properties: Object.fromEntries(properties), additionalProperties: false },
    body: isRecord(json['schema']) ? json['schema'] : null,
    bodyExamples: examplesIn(json),
    answers: new Map(
      Object.entries(members(operation['responses'])).flatMap(([status, answer]) =>
        status === 'default' ? [] : [[Number(status), answerOf(members(answer))]],
      ),
    ),
    otherwise: answerOf(members(members(operation['responses'])['default'])),
  };
}

function answerOf(answer: Schema): DescribedAnswer {
  const content = Object.entries(members(answer['content'])).map(([type, media]) => [type, members(media)] as const);
  return {
    content: new Map(content.map(([type, media]) => [type, members(media['schema'])])),
    codes: content.flatMap(([, media]) => Object.keys(members(media['examples']))),
  };
}

/** The values of `example` and `examples` of a media type. */
export function examplesIn(media: Schema): unknown[] {
  const named = Object.values(members(media['examples'])).map((example) => members(example)['value']);
  return media['example'] === undefined ? named : [media['example'], ...named];
}

/** The members of an object; none of anything else. */
export function members(value: unknown): Schema {
  return isRecord(value) ? value : {};
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
