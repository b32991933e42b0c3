import { type Document, parseAllDocuments, visit } from 'yaml';
import { z } from 'zod';
import { decimalNumber, doubleOf, type JsonNumber, jsonNumber } from '../../core/exact-number.ts';
import { group } from '../../resources/definition.ts';
import { configurationKinds, type Kind, kindPath } from '../../resources/kinds.ts';
import type { ApplyObject } from '../../store/store.ts';
import { keyAsText } from './map-keys.ts';
import { yamlDialect } from './yaml-dialect.ts';

/** What is wrong with a manifest, for the person who wrote it. */
export interface ManifestError {
  file: string;
  message: string;
}

export interface ParsedManifests {
  objects: ApplyObject[];
  errors: ManifestError[];
}

/** How manifests are read. */
export interface Reading {
  /** Those that are known beside Namespace and Secret; default: those of configuration. */
  kinds?: readonly Kind[];
  /** Where a namespaced object goes that names no namespace; default: `default`, as kubectl has it. */
  namespace?: string;
  /** Whether objects of other API groups are left out; default: each of them is an error. */
  skipsForeign?: boolean;
}
const aliasesMax = 100;

const metadata = z.object({
  name: z.string(),
  namespace: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});
const head = z.looseObject({ apiVersion: z.string(), kind: z.string() });
const list = z.looseObject({ items: z.array(z.unknown()) });
// What the API server itself fills in is taken and ignored, so that the output of `kubectl get -o yaml` can be loaded.
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

/**
 * The objects of a YAML or JSON file as `kubectl apply` takes it: several documents, Lists, Secrets with stringData.
 * A broken document does not keep the others from being read. Whether a spec is valid is the store's to say.
 */
export function parseManifests(file: string, text: string, reading: Reading = {}): ParsedManifests {
  const wanted = { kinds: configurationKinds, namespace: 'default', skipsForeign: false, ...reading };
  const objects: ApplyObject[] = [];
  const errors: ManifestError[] = [];
  const documents = parseAllDocuments(text, yamlDialect);
  for (const document of Array.isArray(documents) ? documents : []) {
    const broken = document.errors[0];
    try {
      if (broken !== undefined) throw new Error(broken.message);
      keepNumbers(document);
      const value: unknown = document.toJS({ maxAliasCount: aliasesMax });
      if (value !== null) objects.push(...toObjects(value, wanted));
    } catch (error) {
      errors.push({ file, message: error instanceof z.ZodError ? z.prettifyError(error).replaceAll('\n', ' ') : messageOf(error) });
    }
  }
  return { objects, errors };
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

function toObjects(value: unknown, reading: Required<Reading>): ApplyObject[] {
  const { apiVersion, kind } = head.parse(value);
  if (apiVersion === 'v1' && kind === 'List') return list.parse(value).items.flatMap((item) => toObjects(item, reading));
  const known = (['Namespace', 'Secret', ...reading.kinds] as const).find((each) => each === kind);
  if (known === undefined && kind === 'DeliveryPool' && apiVersion === kindPath(kind).apiVersion)
    throw new Error('DeliveryPool is a kind of clusters: standalone has workers of its own, as many as --workers says');
  if (known === undefined || kindPath(known).apiVersion !== apiVersion) {
    if (reading.skipsForeign && !apiVersion.startsWith(`${group}/`)) return [];
    throw new Error(`${kind} of ${apiVersion} is not a kind that Posthorn knows`);
  }
  return [toObject(known, value, reading.namespace)];
}

function toObject(kind: Kind, value: unknown, namespace: string): ApplyObject {
  switch (kind) {
    case 'Namespace':
      return { kind, metadata: placed(kind, namespaceManifest.parse(value).metadata, namespace) };
    case 'Secret': {
      const secret = secretManifest.parse(value);
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
      const { metadata: given, spec } = resource.parse(value);
      return { kind, metadata: placed(kind, given, namespace), spec };
    }
  }
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

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
}
