import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Refusal } from '../../compile/compiled.ts';
import { environmentSources, poolEnvironment } from '../../compile/delivery-pool/deployment.ts';
import type { PoolDefaults } from '../../compile/delivery-pool/pool-setting.ts';
import { canonicalJson } from '../../core/canonical-json.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import type { KubernetesObjects } from '../../store/kubernetes/kubernetes-objects.ts';

/** The kinds of objects that hold the configuration of workers. */
export const configurationKinds = {
  ConfigMap: { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
  Secret: { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' },
} as const;
type SourceKind = keyof typeof configurationKinds;

const texts = z.record(z.string(), z.string()).default({});
const content = z.looseObject({ data: texts, binaryData: texts });

/** What the workers of a pool will find in their environment, read from where the kubelet reads it. */
export interface PoolEnvironment {
  variables: Record<string, string>;
  /** Texts of the files that are mounted, by path. */
  files: ReadonlyMap<string, string>;
  /** Hash of all that the pods read only at their start. It reveals none of its inputs: the keys that seal secrets are among them. */
  hash: string;
}

/** Returns why it cannot be read, when an object or a key of it is missing. Throws UNAVAILABLE. */
export async function readPoolEnvironment(
  pool: PosthornObject<'DeliveryPool'>,
  defaults: PoolDefaults,
  objects: Pick<KubernetesObjects, 'get'>,
): Promise<PoolEnvironment | Refusal> {
  const reader = new ContentReader(objects, pool.metadata.namespace ?? '');
  const variables: Record<string, string> = {};
  const files = new Map<string, string>();
  const parts: unknown[] = [];
  for (const { kind, name } of environmentSources(pool, { defaults })) {
    const data = await reader.contentOf(kind, name);
    if (data === null) return missing(kind, name);
    Object.assign(variables, data);
    parts.push(data);
  }
  for (const { kind, name, path } of defaults.mounts) {
    const data = await reader.contentOf(kind, name);
    if (data === null) return missing(kind, name);
    for (const [key, text] of Object.entries(data)) files.set(`${path}/${key}`, text);
    parts.push(data);
  }
  for (const variable of poolEnvironment(pool)) {
    const reference = referenceOf(variable.valueFrom);
    if (reference === null) {
      variables[variable.name] = variable.value ?? '';
      continue;
    }
    const { kind, name, key } = reference;
    const data = await reader.contentOf(kind, name);
    if (data === null) return missing(kind, name);
    const value = data[key];
    if (value === undefined) return { reason: 'KeyNotFound', message: `${kind} ${name} has no key ${key}` };
    variables[variable.name] = value;
    parts.push(value);
  }
  return { variables, files, hash: createHash('sha256').update(canonicalJson(parts)).digest('hex').slice(0, 32) };
}

/** Reads each object once. */
class ContentReader {
  readonly #objects: Pick<KubernetesObjects, 'get'>;
  readonly #namespace: string;
  readonly #read = new Map<string, Record<string, string> | null>();

  constructor(objects: Pick<KubernetesObjects, 'get'>, namespace: string) {
    this.#objects = objects;
    this.#namespace = namespace;
  }

  async contentOf(kind: SourceKind, name: string): Promise<Record<string, string> | null> {
    const id = `${kind}/${name}`;
    const known = this.#read.get(id);
    if (known !== undefined) return known;
    const object = await this.#objects.get(configurationKinds[kind], { namespace: this.#namespace, name });
    const found = object === null ? null : decoded(kind, object);
    this.#read.set(id, found);
    return found;
  }
}

function decoded(kind: SourceKind, object: object): Record<string, string> {
  const { data, binaryData } = content.parse(object);
  if (kind === 'ConfigMap') return { ...binaryData, ...data };
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
}

const reference = z.object({ name: z.string(), key: z.string() });
const valueSource = z.object({ secretKeyRef: reference.optional(), configMapKeyRef: reference.optional() });

function referenceOf(valueFrom: unknown): { kind: SourceKind; name: string; key: string } | null {
  if (valueFrom === undefined) return null;
  const { secretKeyRef, configMapKeyRef } = valueSource.parse(valueFrom);
  if (secretKeyRef !== undefined) return { kind: 'Secret', ...secretKeyRef };
  return configMapKeyRef === undefined ? null : { kind: 'ConfigMap', ...configMapKeyRef };
}

function missing(kind: SourceKind, name: string): Refusal {
  return { reason: `${kind}NotFound`, message: `${kind} ${name} does not exist in the namespace of the pool` };
}
