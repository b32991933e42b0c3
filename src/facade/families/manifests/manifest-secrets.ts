import { carriesCredential } from '../../../core/credential-names.ts';
import { masked } from '../../../core/masking.ts';
import { type FieldNode, isRecord } from '../../../resources/field-tree.ts';
import type { ConfigurationKind, PosthornObject } from '../../../resources/kinds.ts';
import { specTrees } from '../../../resources/references.ts';
import { isSecretReference, isSecretRefName } from '../../../resources/secret-use.ts';
import { credentialsSecretName } from '../../records/manifest-yaml.ts';
import { isSameRef, secretRefsIn } from '../../records/secret-draft.ts';
import { keyOfHeader } from '../shared/static-headers.ts';

/** The spec with the credentials masked that its headers have in clear. */
export function withMaskedHeaders(kind: ConfigurationKind, spec: unknown): unknown {
  return changed(spec, specTrees[kind], { header: ({ name, value }) => ({ name, value: masked(value) }), reference: (ref) => ref });
}

export interface NeededSecret {
  name: string;
  keys: string[];
}

/**
 * Credentials in a patch: references to the Secret of its credentials in place of values in clear, and of Secrets that only the API
 * would make. `known`: the spec whose references may stay.
 */
export function withNeededSecrets(
  patch: unknown,
  { kind, metadata }: PosthornObject<ConfigurationKind>,
  known: unknown,
): { patch: unknown; secrets: NeededSecret[] } {
  const refs = secretRefsIn(known);
  const name = credentialsSecretName(kind, metadata.name);
  const keys = new Set<string>();
  const needed = (key: string) => {
    keys.add(key);
    return { name, key };
  };
  const moved = changed(patch, specTrees[kind], {
    header: (header) => ({ name: header.name, valueSecretRef: needed(keyOfHeader(header.name)) }),
    reference: (ref, member, owner) => {
      if (refs.some((each) => isSameRef(each, ref))) return ref;
      const header = owner['name'];
      return needed(member === 'valueSecretRef' && typeof header === 'string' ? keyOfHeader(header) : member.replace(/SecretRef$/, ''));
    },
  });
  return { patch: moved, secrets: keys.size === 0 ? [] : [{ name, keys: [...keys] }] };
}

interface Changes {
  /** A header whose value is a credential in clear. */
  header: (header: { name: string; value: string }) => unknown;
  reference: (ref: { name: string; key: string }, member: string, owner: Record<string, unknown>) => unknown;
}

/** By the tree of the spec: free JSON in it, such as that of a schema, has members of any name and stays as it is. */
function changed(value: unknown, node: FieldNode, changes: Changes): unknown {
  if (node.type === 'list') return Array.isArray(value) ? value.map((item) => changed(item, node.item, changes)) : value;
  if (node.type === 'leaf' || !isRecord(value)) return value;
  const members = Object.entries(value).map(([member, inner]): [string, unknown] => {
    if (node.type === 'map') return [member, changed(inner, node.values, changes)];
    const field = node.fields.get(member);
    if (field === undefined) return [member, inner];
    if (isSecretRefName(member) && isSecretReference(inner)) return [member, changes.reference(inner, member, value)];
    if (member === 'headers' && field.type === 'list' && Array.isArray(inner))
      return [member, inner.map((item) => changedHeader(item, field.item, changes))];
    return [member, changed(inner, field, changes)];
  });
  return Object.fromEntries(members);
}

function changedHeader(item: unknown, node: FieldNode, changes: Changes): unknown {
  if (!isRecord(item)) return item;
  const { name, value } = item;
  if (typeof name === 'string' && typeof value === 'string')
    return carriesCredential({ name, value }) ? changes.header({ name, value }) : item;
  return changed(item, node, changes);
}
