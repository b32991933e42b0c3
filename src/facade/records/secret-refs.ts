import { isRecord } from '../../resources/field-tree.ts';
import { isSecretReference, isSecretRefName, secretUsesIn } from '../../resources/secret-use.ts';
import type { SecretKeyRef } from './credentials.ts';

/** All references to Secrets in a spec. */
export function secretRefsIn(spec: unknown): SecretKeyRef[] {
  return secretUsesIn(spec).map(({ reference }) => reference);
}

/** The value with other references in place of its own. */
export function withSecretRefs<T>(value: T, change: (ref: SecretKeyRef) => SecretKeyRef): T;
export function withSecretRefs(value: unknown, change: (ref: SecretKeyRef) => SecretKeyRef): unknown {
  if (Array.isArray(value)) return value.map((item) => withSecretRefs(item, change));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, unknown] => [
    name,
    isSecretRefName(name) && isSecretReference(member) ? change({ name: member.name, key: member.key }) : withSecretRefs(member, change),
  ]);
  return Object.fromEntries(members);
}

export function isSameRef(one: SecretKeyRef, other: SecretKeyRef): boolean {
  return one.name === other.name && one.key === other.key;
}
