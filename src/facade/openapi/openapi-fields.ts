import { canonicalJson } from '../../core/canonical-json.ts';
import { isRecord } from '../../resources/field-tree.ts';
import type { Components } from './openapi-components.ts';
import { pascal } from './openapi-errors.ts';

type Json = Record<string, unknown>;

/** A field of a schema: its position, and its component. */
interface Use {
  properties: Json;
  field: string;
  owner: string;
}

const reference = '#/components/schemas/';
/** Characters that the document must become shorter by. */
const leastSaved = 1;

/** Fields that are described alike in several schemas become components, to which these refer. A default stays where it is. */
export function shareFields(components: Components): void {
  while (shareOutermost(components)) {
    // Components that are new have fields, too.
  }
}

function shareOutermost(components: Components): boolean {
  const counts = new Map<string, number>();
  for (const { properties, field } of usesIn(components, () => true)) {
    const text = shareable(properties[field]);
    if (text !== null) counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const isRepeated = (text: string | null): boolean => text !== null && (counts.get(text) ?? 0) > 1;
  // Within a field that is shared there is nothing to do before.
  const uses = usesIn(components, (property) => !isRepeated(shareable(property)));
  const alike = Map.groupBy(uses, ({ properties, field }) => shareable(properties[field]));
  const taken = new Set(
    [components.schemas, components.responses, components.parameters].flatMap((section) => Object.keys(section).map(lower)),
  );
  let isChanged = false;
  // The most used one gets the short name.
  for (const [text, each] of [...alike].sort(([, one], [, other]) => other.length - one.length)) {
    const [first] = each;
    if (text === null || first === undefined || each.length < 2) continue;
    const short = `${pascal(first.field)}Field`;
    const name = taken.has(lower(short)) ? first.owner.replace(/^(Create|Update)/, '') + pascal(first.field) : short;
    if (taken.has(lower(name)) || saved(text, name, each.length) < leastSaved) continue;
    taken.add(lower(name));
    components.refer('schemas', name, withoutDefault(first.properties[first.field]));
    for (const { properties, field } of each) {
      const { default: standard } = { ...(isRecord(properties[field]) && properties[field]) };
      properties[field] = { $ref: reference + name, ...(standard !== undefined && { default: standard }) };
    }
    isChanged = true;
  }
  return isChanged;
}

const lower = (name: string): string => name.toLowerCase();

function saved(text: string, name: string, uses: number): number {
  const ref = `{"$ref":"${reference}${name}"}`.length;
  return uses * (text.length - ref) - text.length - `"${name}":,`.length;
}

/** The canonical text of a property, equal in all of its uses; null for a mere reference, and for keywords that must stay at the field itself. */
function shareable(property: unknown): string | null {
  if (!isRecord(property) || 'deprecated' in property || 'readOnly' in property) return null;
  const rest = withoutDefault(property);
  return '$ref' in rest && Object.keys(rest).length === 1 ? null : canonicalJson(rest);
}

function withoutDefault(property: unknown): Json {
  const { default: _, ...rest } = isRecord(property) ? property : {};
  return rest;
}

/** All fields of the components; those within a field if `goesIn` returns true. */
function usesIn({ schemas }: Components, goesIn: (property: unknown) => boolean): Use[] {
  const uses: Use[] = [];
  const visit = (value: unknown, owner: string): void => {
    if (Array.isArray(value)) for (const each of value) visit(each, owner);
    if (!isRecord(value)) return;
    for (const [keyword, each] of Object.entries(value)) {
      if (literals.has(keyword)) continue;
      if (keyword !== 'properties' || !isRecord(each)) {
        visit(each, owner);
        continue;
      }
      for (const [field, property] of Object.entries(each)) {
        uses.push({ properties: each, field, owner });
        if (goesIn(property)) visit(property, owner);
      }
    }
  };
  for (const [name, schema] of Object.entries(schemas)) visit(schema, name);
  return uses;
}

const literals: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'example', 'examples']);
