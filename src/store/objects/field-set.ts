import { canonicalJson } from '../../core/canonical-json.ts';
import { parsePlainJson } from '../../core/plain-json.ts';
import { type FieldNode, isRecord } from '../../resources/field-tree.ts';

/**
 * Paths of fields as server-side apply owns them. A path is the JSON text of its elements, which are those of
 * structured-merge-diff: `f:<name>` a field, `k:<json>` an item by its keys, `v:<json>` a value of a set.
 */
export type FieldSet = ReadonlySet<string>;

const separator = ',';

export function pathText(elements: readonly string[]): string {
  return JSON.stringify(elements).slice(1, -1);
}

export function pathElements(path: string): string[] {
  return parsePlainJson(`[${path}]`);
}

/** Whether `path` is `ancestor` or lies below it. */
export function isWithin(path: string, ancestor: string): boolean {
  return path === ancestor || ancestor === '' || path.startsWith(ancestor + separator);
}

/** `spec.headers[name="a"].value`, as the API server names it in a conflict. */
export function readablePath(path: string): string {
  const parts = pathElements(path).map((element) => {
    const rest = element.slice(2);
    if (element.startsWith('f:')) return `.${rest}`;
    if (element.startsWith('v:')) return `[=${rest}]`;
    const keys: [string, unknown][] = Object.entries(parsePlainJson(rest));
    return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
  });
  return parts.join('').replace(/^\./, '');
}

/** The JSON Pointer (RFC 6901) of the path in its object; null when nothing is there. */
export function pointerOf(path: string, object: unknown): string | null {
  let value = object;
  const steps: (string | number)[] = [];
  for (const element of pathElements(path)) {
    const step = stepOf(element, value);
    if (step === null) return null;
    steps.push(step);
    value = Object(value)[step];
  }
  return steps.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** The member or the index of the item that the element names; null: there is none. */
function stepOf(element: string, value: unknown): string | number | null {
  const rest = element.slice(2);
  if (element.startsWith('f:')) return isRecord(value) && value[rest] !== undefined ? rest : null;
  if (!Array.isArray(value)) return null;
  const keys: unknown = parsePlainJson(rest);
  const isMeant = element.startsWith('v:')
    ? (item: unknown) => canonicalJson(item) === rest
    : (item: unknown) =>
        isRecord(item) &&
        isRecord(keys) &&
        Object.entries(keys).every(([key, wanted]) => canonicalJson(item[key]) === canonicalJson(wanted));
  const index = value.findIndex(isMeant);
  return index < 0 ? null : index;
}

/** The element by which an item of a `set` or `map` list is distinguished from the others. */
export function itemElement(item: unknown, node: FieldNode & { type: 'list' }): string {
  if (node.listType !== 'map') return `v:${canonicalJson(item)}`;
  const keys = isRecord(item) ? node.keys.filter((key) => item[key] !== undefined).map((key) => [key, item[key]]) : [];
  return `k:${canonicalJson(Object.fromEntries(keys))}`;
}

/**
 * Every owned path of a value, with the canonical JSON of its value (empty for what only exists, such as an
 * item of a list). Values that do not have the shape of their node count as leaves; admission refuses them.
 */
export function ownedFields(value: unknown, node: FieldNode): Map<string, string> {
  const fields = new Map<string, string>();
  collect(value, node, [], fields);
  return fields;
}

function collect(value: unknown, node: FieldNode, path: string[], fields: Map<string, string>): void {
  if (value === undefined) return;
  const leaf = (): void => {
    // The object itself has no owner.
    if (path.length > 0) fields.set(pathText(path), canonicalJson(value));
  };
  if (node.type === 'object' && !node.atomic && isRecord(value)) {
    const entries = Object.entries(value).filter(([, field]) => field !== undefined);
    if (entries.length === 0) leaf();
    for (const [name, field] of entries) collect(field, node.fields.get(name) ?? unknownField, [...path, `f:${name}`], fields);
  } else if (node.type === 'map' && isRecord(value)) {
    const entries = Object.entries(value).filter(([, field]) => field !== undefined);
    if (entries.length === 0) leaf();
    for (const [name, field] of entries) collect(field, node.values, [...path, `f:${name}`], fields);
  } else if (node.type === 'list' && node.listType !== 'atomic' && Array.isArray(value)) {
    if (value.length === 0) leaf();
    for (const item of value) {
      const itemPath = [...path, itemElement(item, node)];
      fields.set(pathText(itemPath), '');
      if (node.listType === 'map') collect(item, node.item, itemPath, fields);
    }
  } else {
    leaf();
  }
}

export const unknownField: FieldNode = { type: 'leaf', nullable: true };

/** The set as `fieldsV1` of a managedFields entry. */
export function toFieldsV1(fields: FieldSet): Record<string, unknown> {
  const root: Trie = new Map();
  for (const path of fields) {
    let node = root;
    const elements = pathElements(path);
    for (const element of elements) {
      let next = node.get(element);
      if (next === undefined) {
        next = new Map();
        node.set(element, next);
      }
      node = next;
    }
    node.set(itself, new Map());
  }
  return plain(root);
}

interface Trie extends Map<string, Trie> {}
const itself = '.';

function plain(trie: Trie): Record<string, unknown> {
  const children = [...trie].sort(([a], [b]) => (a < b ? -1 : 1));
  // `{}` marks the path itself as a member.
  if (children.length === 1 && children[0]?.[0] === itself) return {};
  return Object.fromEntries(children.map(([element, child]) => [element, plain(child)]));
}

/** The paths of a `fieldsV1`. */
export function fromFieldsV1(fieldsV1: Record<string, unknown>): FieldSet {
  const fields = new Set<string>();
  gather(fieldsV1, [], fields);
  return fields;
}

function gather(trie: Record<string, unknown>, path: string[], fields: Set<string>): void {
  for (const [element, child] of Object.entries(trie)) {
    if (element === itself) {
      fields.add(pathText(path));
      continue;
    }
    const below = [...path, plainElement(element)];
    if (isRecord(child) && Object.keys(child).length > 0) gather(child, below, fields);
    else fields.add(pathText(below));
  }
}

/** As `itemElement` writes it: the API server escapes &, < and > in the keys and values of items. */
function plainElement(element: string): string {
  if (!/^[kv]:.*\\/s.test(element)) return element;
  return element.slice(0, 2) + canonicalJson(parsePlainJson(element.slice(2)));
}
