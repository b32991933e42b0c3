import { isRecord } from '../../resources/field-tree.ts';
import type { SecretKeyRef } from './secrets.ts';

/** All `…SecretRef` members of a spec, at any depth. */
export function secretRefsIn(value: unknown): SecretKeyRef[] {
  if (Array.isArray(value)) return value.flatMap(secretRefsIn);
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => (isSecretRefName(name) ? refIn(member) : secretRefsIn(member)));
}

/** Whether a member of a spec with this name points at a value of a Secret. */
export function isSecretRefName(name: string): boolean {
  return name.endsWith('SecretRef');
}

function refIn(value: unknown): SecretKeyRef[] {
  return isRecord(value) && typeof value['name'] === 'string' && typeof value['key'] === 'string'
    ? [{ name: value['name'], key: value['key'] }]
    : [];
}
