import { type FieldNode, fieldTree, isRecord } from './field-tree.ts';
import {
  byKind,
  type ConfigurationKind,
  configurationKinds,
  definitionOf,
  kinds,
  type PosthornKind,
  type PosthornObject,
  posthornKinds,
} from './kinds.ts';
import { isSecretRefName } from './secret-use.ts';

/** The tree of the spec of each kind. */
export const specTrees = byKind(posthornKinds, (kind) => fieldTree(kinds[kind].spec));

/** A field of a spec that names an object of `kind`; `path`: its members below the spec, through lists. */
export interface Reference {
  kind: string;
  path: readonly string[];
}

/** The references in the spec of each kind, as their schemas declare them. */
export const references = byKind(posthornKinds, (kind) => referencesIn(specTrees[kind], []));

function referencesIn(node: FieldNode, path: readonly string[]): Reference[] {
  if (node.type === 'list') return referencesIn(node.item, path);
  if (node.type !== 'object') return [];
  if (node.refersTo !== undefined) return [{ kind: node.refersTo, path }];
  return [...node.fields].flatMap(([name, field]) => referencesIn(field, [...path, name]));
}

const referrers = byKind(posthornKinds, (kind) =>
  configurationKinds.filter((each) => references[each].some((reference) => reference.kind === kind)),
);

/** The configuration kinds whose objects may name one of the kind. */
export function referrersOf(kind: PosthornKind): readonly ConfigurationKind[] {
  return referrers[kind];
}

/** The kinds that objects of the kind may name, each once. */
export function targetsOf(kind: PosthornKind): PosthornKind[] {
  return posthornKinds.filter((each) => references[kind].some((reference) => reference.kind === each));
}

/** The names of the objects of a kind that the object refers to, each once. */
export function namesReferredTo({ kind, spec }: PosthornObject<PosthornKind>, target: PosthornKind): string[] {
  const names = references[kind].filter((reference) => reference.kind === target).flatMap(({ path }) => namesAt(spec, path));
  return [...new Set(names)];
}

/** Whether the object refers to the object of this kind and name: as `namesReferredTo`, for scans of thousands of objects. */
export function refersTo({ kind, spec }: PosthornObject<PosthornKind>, target: PosthornKind, name: string): boolean {
  for (const reference of references[kind]) if (reference.kind === target && isNamedAt(spec, reference.path, 0, name)) return true;
  return false;
}

function isNamedAt(value: unknown, path: readonly string[], from: number, name: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some((item) => isNamedAt(item, path, from, name));
  const member = path[from];
  const fields = value as Record<string, unknown>;
  return member === undefined ? fields['name'] === name : isNamedAt(fields[member], path, from + 1, name);
}

function namesAt(value: unknown, path: readonly string[]): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => namesAt(item, path));
  if (!isRecord(value)) return [];
  const [member, ...rest] = path;
  if (member !== undefined) return namesAt(value[member], rest);
  return typeof value['name'] === 'string' ? [value['name']] : [];
}

/** Configuration kinds whose objects may refer to Secrets. */
export const kindsWithSecrets: readonly ConfigurationKind[] = configurationKinds.filter((kind) => hasSecretReference(specTrees[kind]));

function hasSecretReference(node: FieldNode): boolean {
  if (node.type === 'list') return hasSecretReference(node.item);
  return node.type === 'object' && [...node.fields].some(([name, field]) => isSecretRefName(name) || hasSecretReference(field));
}

/** The namespace that the object is the organization of, or that it is in: where its references lead. */
export function namespaceOf({ kind, metadata, spec }: PosthornObject<PosthornKind>): string {
  return definitionOf(kind).namespaceIn?.(spec) ?? metadata.namespace ?? '';
}

/** Configuration kinds such that those come first that others lie in or refer to. */
export const targetsFirst: readonly ConfigurationKind[] = inOrder(
  [...configurationKinds.filter((kind) => kinds[kind].scope === 'Cluster'), ...configurationKinds],
  (kind) => (kinds[kind].scope === 'Cluster' ? [] : targetsOf(kind)),
);

/** Kinds in namespaces with records in the registry, in the order in which these are retracted: messages stop coming in, then referrers go before what they name. */
export const retractionOrder = inOrder([...configurationKinds.filter(isIntake), ...configurationKinds], (kind) =>
  isIntake(kind) ? [] : referrersOf(kind),
).flatMap((kind) => {
  const { recordKind } = kinds[kind];
  return recordKind === null || recordKind === 'organization' ? [] : [{ kind, recordKind }];
});

function isIntake(kind: PosthornKind): boolean {
  return definitionOf(kind).isIntake === true;
}

/** Each of the kinds once, behind those that it has to follow. */
function inOrder(wanted: readonly ConfigurationKind[], before: (kind: ConfigurationKind) => readonly PosthornKind[]): ConfigurationKind[] {
  const ordered = new Set<ConfigurationKind>();
  const visiting = new Set<ConfigurationKind>();
  const visit = (kind: ConfigurationKind): void => {
    if (visiting.has(kind)) return;
    visiting.add(kind);
    const first = before(kind);
    for (const each of configurationKinds) if (first.includes(each)) visit(each);
    ordered.add(kind);
  };
  for (const kind of wanted) visit(kind);
  return [...ordered];
}
