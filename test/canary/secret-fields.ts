import { readdirSync } from 'node:fs';
import { type FieldNode, fieldTree, isRecord } from '../../src/resources/field-tree.ts';
import { configurationKinds, type Kind, kinds, type PosthornKind } from '../../src/resources/kinds.ts';
import type { ValidationCase } from '../apiserver/cases/case.ts';
import { members, type Schema } from '../contract/described-operations.ts';
import type { DocumentSchemas } from '../contract/document-schemas.ts';

const suffix = 'SecretRef';
/** Those that are a secret by their name, and not the secret of what they name. */
const secretsByName = new Set(['signingSecretRef', 'previousSecretRef']);

/** Every field of the kinds of both worlds that refers to a value in a Secret, as `Destination spec.http.auth.tokenSecretRef`. */
export function secretFieldsOfKinds(): string[] {
  return configurationKinds.flatMap((kind) => refsIn(fieldTree(kinds[kind].spec), `${kind} spec`));
}

/** The names of the values of such fields, which are their names in the API, and what the API calls some of them. */
export function secretNames(): Set<string> {
  return new Set([...secretFieldsOfKinds().map((field) => secretNameOf(field.slice(field.lastIndexOf('.') + 1))), 'secret']);
}

/** `token` of `tokenSecretRef`, `signingSecret` of `signingSecretRef`. */
function secretNameOf(reference: string): string {
  return reference.slice(0, secretsByName.has(reference) ? -'Ref'.length : -suffix.length);
}

function refsIn(node: FieldNode, path: string): string[] {
  switch (node.type) {
    case 'object':
      return [...node.fields].flatMap(([name, field]) => (name.endsWith(suffix) ? [`${path}.${name}`] : refsIn(field, `${path}.${name}`)));
    case 'list':
      return refsIn(node.item, path);
    case 'map':
      return refsIn(node.values, path);
    case 'leaf':
      return [];
    default:
      return node satisfies never;
  }
}

/** A valid object of a kind, and the secret fields that it has. */
export interface Bearer {
  kind: Kind;
  spec: Record<string, unknown>;
  fields: string[];
}

/** Valid objects of the table in test/apiserver that have all secret fields together, each field at least once. */
export async function bearersOfAllFields(): Promise<Bearer[]> {
  const directory = new URL('../apiserver/cases/', import.meta.url);
  const modules = await Promise.all(readdirSync(directory).map((file): Promise<object> => import(new URL(file, directory).href)));
  const cases: ValidationCase[] = modules
    .flatMap((module) => Object.values(module))
    .filter(Array.isArray)
    .flat();
  const covered = new Set<string>();
  return cases.flatMap(({ kind, object, old, invalid }) => {
    const spec = members(object)['spec'];
    if (
      invalid !== undefined ||
      old !== undefined ||
      !isRecord(spec) ||
      kind === 'Secret' ||
      kind === 'Namespace' ||
      kind === 'DeliveryPool'
    )
      return [];
    const fields = refPathsOf(spec, `${kind satisfies PosthornKind} spec`);
    if (fields.every((field) => covered.has(field))) return [];
    for (const field of fields) covered.add(field);
    return [{ kind, spec, fields }];
  });
}

function refPathsOf(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => refPathsOf(item, path));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name.endsWith(suffix) && isRecord(member) ? [`${path}.${name}`] : refPathsOf(member, `${path}.${name}`),
  );
}

/** A copy in which every reference to a Secret is another one; `refer` is given the field and the name of its value. */
export function withReferences(value: unknown, path: string, refer: (field: string, name: string) => object): unknown {
  if (Array.isArray(value)) return value.map((item) => withReferences(item, path, refer));
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).map(([name, member]) => [
    name,
    name.endsWith(suffix) && isRecord(member)
      ? refer(`${path}.${name}`, secretNameOf(name))
      : withReferences(member, `${path}.${name}`, refer),
  ]);
  return Object.fromEntries(entries);
}

/** The names of secrets among the properties of a body's schema, at any depth. */
export function secretsInSchema(schema: Schema, names: ReadonlySet<string>, schemas: DocumentSchemas): string[] {
  const node = schemas.resolved(schema);
  const own = Object.entries(members(node['properties']));
  const deeper = [...own.map(([, property]) => property), node['items'], ...branches(node)].filter(isRecord);
  return [
    ...own.filter(([name, property]) => names.has(name) && isText(members(property))).map(([name]) => name),
    ...deeper.flatMap((each) => secretsInSchema(each, names, schemas)),
  ];
}

function branches(node: Schema): unknown[] {
  return [node['anyOf'], node['oneOf'], node['allOf']].filter(Array.isArray).flat();
}

function isText(node: Schema): boolean {
  return [node['type']].flat().includes('string') || branches(node).some((branch) => isText(members(branch)));
}
