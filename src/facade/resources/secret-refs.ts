import { isRecord } from '../../resources/field-tree.ts';
import type { SecretKeyRef } from './secrets.ts';

/** All `…SecretRef` members of a spec, at any depth. */
export function secretRefsIn(value: unknown): SecretKeyRef[] {
  if (Array.isArray(value)) return value.flatMap(secretRefsIn);
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => (name.endsWith('SecretRef') ? refIn(member) : secretRefsIn(member)));
}

function refIn(value: unknown): SecretKeyRef[] {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['key'] === 'string'
    ? [{ name: value['name'], key: value['key'] }]
    : [];
}
