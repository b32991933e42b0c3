import { type Document, LineCounter, parseAllDocuments, visit } from 'yaml';
import { z } from 'zod';
import { decimalNumber, doubleOf, type JsonNumber, jsonNumber } from '../../core/exact-number.ts';
import { inUtf8 } from '../../core/payload-charset.ts';
import { group } from '../../resources/definition.ts';
import { fieldPath } from '../../resources/field-tree.ts';
import { configurationKinds, type Kind, kindPath } from '../../resources/kinds.ts';
import type { ApplyObject } from '../../store/store.ts';
import { keyAsText } from './map-keys.ts';
import { offsetOf, type Place, placeAt } from './places.ts';
import { yamlDialect } from './yaml-dialect.ts';

/** Error of a manifest, for its author. */
export interface ManifestError {
  file: string;
  message: string;
}

export interface ParsedManifests {
  objects: ApplyObject[];
  errors: ManifestError[];
}

/** An object of a file. */
export interface ReadObject {
  object: ApplyObject;
  /** The whole text as written, with fields that an `ApplyObject` lacks. */
  written: unknown;
  /** Finds a field, such as `spec.http.url`; a missing one has the position of the nearest part around it. */
  placeOf(field: string): Place;
}

/** Why a document, or a file without one, cannot be read. */
export interface ReadProblem {
  message: string;
  place: Place;
}

export interface ReadDocument {
  document: Document.Parsed;
  objects: ReadObject[];
  /** With it there are no objects; null: there is none. */
  problem: ReadProblem | null;
}

export interface ReadText {
  documents: ReadDocument[];
  /** Problems outside of documents. */
  problems: ReadProblem[];
  lines: LineCounter;
}

/** How manifests are read. */
export interface Reading {
  /** Known kinds beside Namespace and Secret; default: those of configuration. */
  kinds?: readonly Kind[];
  /** Where a namespaced object goes that names no namespace; default: `default`, as kubectl has it. */
  namespace?: string;
  /** Whether objects of other API groups are left out; default: each of them is an error. */
  skipsForeign?: boolean;
}
const aliasesMax = 100;
/** A byte order mark before a document: files that begin with one may have been joined. */
const markOfDocument = /^\ufeff(?=---)|(?<=^---[^\n]*\n)\ufeff/gm;

/** The text of a manifest file in UTF-8: the file may be in UTF-16 with a byte order mark, as PowerShell writes it. */
export function manifestBytes(bytes: Buffer): Buffer {
  return inUtf8(bytes, null);
}

export function manifestText(bytes: Buffer): string {
  return manifestBytes(bytes).toString();
}

const metadata = z.object({
  name: z.string(),
  namespace: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});
const head = z.looseObject({ apiVersion: z.string(), kind: z.string() });
const list = z.looseObject({ items: z.array(z.unknown()) });
// Fields that the API server fills in are accepted and ignored, so that the output of `kubectl get -o yaml` can be loaded.
const resource = z.strictObject({ apiVersion: z.string(), kind: z.string(), metadata, spec: z.unknown(), status: z.unknown().optional() });
const namespaceManifest = z.strictObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata,
  spec: z.unknown().optional(),
  status: z.unknown().optional(),
});
const secretManifest = z.strictObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata,
  type: z.string().optional(),
  immutable: z.boolean().optional(),
  data: z.record(z.string(), z.base64()).optional(),
  stringData: z.record(z.string(), z.string()).optional(),
});

/** A manifest that is no object of Posthorn. `field`: where in its document. */
class Misread extends Error {
  override readonly name = 'Misread';
  readonly field: string;

  constructor(message: string, field: string) {
    super(message);
    this.field = field;
  }
}

/** The objects of a YAML or JSON file as `readDocuments` finds them, with the errors that it has. */
export function parseManifests(file: string, text: string, reading: Reading = {}): ParsedManifests {
  const { documents, problems } = readDocuments(text, reading);
  const found = [...problems, ...documents.flatMap(({ problem }) => problem ?? [])];
  return {
    objects: documents.flatMap(({ objects }) => objects.map(({ object }) => object)),
    errors: found.map(({ message, place }) => ({ file, message: `${message} at line ${place.line}, column ${place.column}` })),
  };
}

/**
 * Reads a YAML or JSON file as `kubectl apply` takes it: several documents, Lists, Secrets with stringData.
 * A broken document does not prevent reading the others. The store validates specs.
 */
export function readDocuments(text: string, reading: Reading = {}): ReadText {
  const wanted = { kinds: configurationKinds, namespace: 'default', skipsForeign: false, ...reading };
  const lines = new LineCounter();
  const stream = parseAllDocuments(text.replaceAll(markOfDocument, ''), { ...yamlDialect, lineCounter: lines, prettyErrors: false });
  const problems = 'empty' in stream ? stream.errors.map(({ message, pos }) => ({ message, place: placeAt(lines, pos[0]) })) : [];
  return { lines, problems, documents: Array.from(stream, (document) => readDocument(document, lines, wanted)) };
}

function readDocument(document: Document.Parsed, lines: LineCounter, reading: Required<Reading>): ReadDocument {
  const failed = (message: string, offset: number): ReadDocument => ({
    document,
    objects: [],
    problem: { message: message.split('\n')[0] ?? '', place: placeAt(lines, offset) },
  });
  const broken = document.errors[0];
  if (broken !== undefined) return failed(broken.message, broken.pos[0]);
  try {
    keepNumbers(document);
    const value: unknown = document.toJS({ maxAliasCount: aliasesMax });
    const found = value === null ? [] : toObjects(value, '', reading);
    const objects = found.map(({ object, written, at }): ReadObject => {
      return { object, written, placeOf: (field) => placeAt(lines, offsetOf(document, below(at, field))) };
    });
    return { document, objects, problem: null };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return failed(message, offsetOf(document, error instanceof Misread ? error.field : ''));
  }
}

/** Numbers that a double would change keep what is written, in the form that JSON has. Keys are text. */
function keepNumbers(document: Document): void {
  visit(document, {
    Pair: (_key, pair) => keyAsText(pair, document, yamlNumber),
    Scalar: (_key, node) => {
      if (typeof node.value === 'number' && node.source !== undefined) node.value = yamlNumber(node.source, node.value);
    },
  });
}

/** What kubectl has no number for, such as 1e400, is text. */
function yamlNumber(source: string, double: number): JsonNumber | string {
  const text = source.replaceAll('_', '');
  const [, sign, hexadecimal, binary, octal] = /^([-+]?)(?:0x([0-9a-f]+)|0b([01]+)|0o?([0-7]+))$/i.exec(text) ?? [];
  const prefixed =
    hexadecimal !== undefined ? `0x${hexadecimal}` : binary !== undefined ? `0b${binary}` : octal !== undefined ? `0o${octal}` : null;
  if (prefixed !== null) return jsonNumber(`${sign === '-' ? '-' : ''}${BigInt(prefixed)}`);
  const number = decimalNumber(text);
  if (number === null) return double;
  return Number.isFinite(doubleOf(number)) ? number : source;
}

interface Written {
  object: ApplyObject;
  written: unknown;
  /** Path of it in its document. */
  at: string;
}

function toObjects(value: unknown, at: string, reading: Required<Reading>): Written[] {
  const { apiVersion, kind } = parsed(head, value, at);
  if (isList(apiVersion, kind, reading.kinds))
    return parsed(list, value, at).items.flatMap((item, index) => toObjects(item, below(at, `items[${index}]`), reading));
  const known = (['Namespace', 'Secret', ...reading.kinds] as const).find((each) => each === kind);
  if (known === undefined && kind === 'DeliveryPool' && apiVersion === kindPath(kind).apiVersion)
    throw new Misread('DeliveryPool is a kind of clusters: standalone has workers of its own, as many as --workers', below(at, 'kind'));
  if (known === undefined || kindPath(known).apiVersion !== apiVersion) {
    if (reading.skipsForeign && !apiVersion.startsWith(`${group}/`)) return [];
    throw new Misread(`${kind} of ${apiVersion} is not a kind of Posthorn`, below(at, known === undefined ? 'kind' : 'apiVersion'));
  }
  return [{ object: toObject(known, value, at, reading.namespace), written: value, at }];
}

/** A List, or what `kubectl get --raw` shows of a kind, such as a RouteList. Items of a SecretList would not name their kind. */
function isList(apiVersion: string, kind: string, kinds: readonly Kind[]): boolean {
  if (apiVersion === 'v1' && kind === 'List') return true;
  return kinds.some((each) => kind === `${each}List` && apiVersion === kindPath(each).apiVersion);
}

function toObject(kind: Kind, value: unknown, at: string, namespace: string): ApplyObject {
  switch (kind) {
    case 'Namespace':
      return { kind, metadata: placed(kind, parsed(namespaceManifest, value, at).metadata, namespace) };
    case 'Secret': {
      const secret = parsed(secretManifest, value, at);
      const plain = Object.entries(secret.stringData ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
      const data = { ...secret.data, ...Object.fromEntries(plain) };
      return {
        kind,
        metadata: placed(kind, secret.metadata, namespace),
        data,
        ...(secret.type === undefined ? {} : { type: secret.type }),
      };
    }
    default: {
      const { metadata: given, spec } = parsed(resource, value, at);
      return { kind, metadata: placed(kind, given, namespace), spec };
    }
  }
}

/** Throws Misread at the position of the first unknown member, else of the first error. */
function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown, at: string): z.output<Schema> {
  const { data, error } = schema.safeParse(value);
  if (error === undefined) return data;
  const issue = error.issues.find(({ code }) => code === 'unrecognized_keys') ?? error.issues[0];
  const keys = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  throw new Misread(z.prettifyError(error).replaceAll('\n', ' '), below(at, fieldPath([...(issue?.path ?? []), ...keys])));
}

function below(at: string, field: string): string {
  return at === '' || field === '' ? at + field : `${at}.${field}`;
}

function placed(
  kind: Kind,
  { name, namespace, labels, annotations }: z.output<typeof metadata>,
  fallback: string,
): ApplyObject['metadata'] {
  return {
    name,
    ...(kindPath(kind).namespaced ? { namespace: namespace ?? fallback } : {}),
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
}
