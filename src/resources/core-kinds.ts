import { z } from 'zod';
import { canonicalJson } from '../core/canonical-json.ts';
import { parsePlainJson } from '../core/plain-json.ts';
import type { Cause } from './causes.ts';
import { isRecord } from './field-tree.ts';
import type { SecretObject } from './kinds.ts';
import { namespacedMetadata, namespaceMetadata } from './object-metadata.ts';

/** Secret and Namespace as the API server takes them, as far as Posthorn stores them itself. */

const maxSecretBytes = 1024 * 1024;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const dataKey = /^[-._a-zA-Z0-9]{1,253}$/;

function checkKeys(value: Record<string, string>, context: z.RefinementCtx): void {
  for (const key of Object.keys(value)) {
    if (!dataKey.test(key) || key === '.' || key.startsWith('..')) {
      context.addIssue({ code: 'custom', path: [key], message: 'must be a key of letters, digits, -, _ and ., at most 253 long' });
    }
  }
}

const data = z.record(z.string(), z.string().regex(base64, 'must be base64; give plain text under stringData')).superRefine(checkKeys);
const stringData = z.record(z.string(), z.string()).superRefine(checkKeys);

/** Keys that a Secret of these types must have. */
const keysOfType: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
};

const accountAnnotation = 'kubernetes.io/service-account.name';

/** Data that the type of the Secret requires and that it lacks. */
function lackingForType({ type = '', data = {}, metadata }: SecretObject): Cause[] {
  const lacks = (field: string, message = `is required of a Secret of the type ${type}`): Cause[] => [{ field, message }];
  if (type === 'kubernetes.io/service-account-token')
    return metadata.annotations?.[accountAnnotation] ? [] : lacks(`metadata.annotations.${accountAnnotation}`);
  if (type === 'kubernetes.io/basic-auth')
    return data['username'] === undefined && data['password'] === undefined ? [...lacks('data.username'), ...lacks('data.password')] : [];
  return (keysOfType[type] ?? []).flatMap((key) => {
    const value = data[key];
    if (value === undefined || (value === '' && type === 'kubernetes.io/ssh-auth')) return lacks(`data.${key}`);
    return key.startsWith('.docker') && !isJsonObject(value) ? lacks(`data.${key}`, 'must be a JSON object') : [];
  });
}

function isJsonObject(encoded: string): boolean {
  try {
    return isRecord(parsePlainJson(Buffer.from(encoded, 'base64').toString()));
  } catch {
    return false;
  }
}

/** The fields of a Secret, as they are written. */
export const secretFields = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Secret'),
  metadata: namespacedMetadata,
  type: z.string().default('Opaque'),
  immutable: z.boolean().optional(),
  data: data.optional(),
  stringData: stringData.optional(),
});

/** A Secret as it is stored: `stringData` has been merged into `data`. */
export const secretObject = secretFields
  .transform(({ stringData: plain, ...written }) => {
    const secret = { ...written, type: written.type === '' ? 'Opaque' : written.type };
    if (secret.data === undefined && plain === undefined) return secret;
    const encoded = Object.entries(plain ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')] as const);
    return { ...secret, data: { ...secret.data, ...Object.fromEntries(encoded) } };
  })
  .superRefine((secret, context) => {
    const bytes = Object.values(secret.data ?? {}).reduce((sum, value) => sum + Buffer.byteLength(value, 'base64'), 0);
    if (bytes > maxSecretBytes)
      context.addIssue({ code: 'custom', path: ['data'], message: `must be at most ${maxSecretBytes} bytes together` });
  });

/** What the type of a Secret requires, and what a change must keep: the type, and all of an immutable one. */
export function brokenSecretRules(secret: Record<string, unknown>, old: SecretObject | undefined): Cause[] {
  const causes = lackingForType(secret as unknown as SecretObject);
  if (old === undefined) return causes;
  if (secret['type'] !== (old.type ?? 'Opaque'))
    causes.push({ field: 'type', message: 'cannot be changed; delete the Secret and create it again' });
  if (old.immutable !== true) return causes;
  const message = 'cannot be changed: the Secret is immutable; delete it and create it again';
  if (secret['immutable'] !== true) causes.push({ field: 'immutable', message });
  if (canonicalJson(secret['data'] ?? {}) !== canonicalJson(old.data ?? {})) causes.push({ field: 'data', message });
  return causes;
}

export const namespaceObject = z.strictObject({
  apiVersion: z.literal('v1'),
  kind: z.literal('Namespace'),
  metadata: namespaceMetadata,
  spec: z.strictObject({ finalizers: z.array(z.string()).optional() }).optional(),
  status: z.looseObject({}).optional(),
});
