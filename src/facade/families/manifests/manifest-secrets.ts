import { carriesCredential } from '../../../core/credential-names.ts';
import { masked } from '../../../core/masking.ts';
import { isRecord } from '../../../resources/field-tree.ts';
import { isSecretReference, isSecretRefName } from '../../../resources/secret-use.ts';
import { isSameRef, secretRefsIn } from '../../records/secrets.ts';
import { keyOfHeader } from '../shared/static-headers.ts';

/** The spec with the credentials masked that its headers have in clear. */
export function withMaskedHeaders(spec: unknown): unknown {
  return changed(spec, { header: ({ name, value }) => ({ name, value: masked(value) }), reference: (ref) => ref });
}

export interface NeededSecret {
  name: string;
  keys: string[];
}

/**
 * What stands in a patch for credentials: references to the Secret `<slug>-credentials` in place of values in clear, and of Secrets that only the API
 * would make. `known`: the spec whose references may stay.
 */
export function withNeededSecrets(patch: unknown, slug: string, known: unknown): { patch: unknown; secrets: NeededSecret[] } {
  const refs = secretRefsIn(known);
  const name = `${slug}-credentials`;
  const keys = new Set<string>();
  const needed = (key: string) => {
    keys.add(key);
    return { name, key };
  };
  const moved = changed(patch, {
    header: (header) => ({ name: header.name, valueSecretRef: needed(keyOfHeader(header.name)) }),
    reference: (ref, member, owner) => {
      if (refs.some((each) => isSameRef(each, ref))) return ref;
      const header = owner['name'];
      return needed(typeof header === 'string' ? keyOfHeader(header) : member.replace(/SecretRef$/, ''));
    },
  });
  return { patch: moved, secrets: keys.size === 0 ? [] : [{ name, keys: [...keys] }] };
}

interface Changes {
  /** A header whose value is a credential in clear. */
  header: (header: { name: string; value: string }) => unknown;
  reference: (ref: { name: string; key: string }, member: string, owner: Record<string, unknown>) => unknown;
}

function changed(value: unknown, changes: Changes): unknown {
  if (Array.isArray(value)) return value.map((item) => changed(item, changes));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([member, inner]): [string, unknown] => {
    if (isSecretRefName(member) && isSecretReference(inner)) return [member, changes.reference(inner, member, value)];
    if (member === 'headers' && Array.isArray(inner)) return [member, inner.map((item) => changedHeader(item, changes))];
    return [member, changed(inner, changes)];
  });
  return Object.fromEntries(members);
}

function changedHeader(item: unknown, changes: Changes): unknown {
  if (!isRecord(item)) return item;
  const { name, value } = item;
  if (typeof name === 'string' && typeof value === 'string')
    return carriesCredential({ name, value }) ? changes.header({ name, value }) : item;
  return changed(item, changes);
}
