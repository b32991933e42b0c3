import { z } from 'zod';
import type { Rule } from './definition.ts';
import { isRecord } from './field-tree.ts';

/** A node of the OpenAPI v3 schema of a CRD. */
export type StructuralSchema = Record<string, unknown>;

/**
 * The structural schema of a zod object: OpenAPI 3.0, what may be written (defaults left out), without the keywords
 * that Kubernetes refuses. Unknown fields need no keyword there: the server prunes or, if strict, refuses them.
 */
export function structuralSchema(schema: z.ZodObject): StructuralSchema {
  return cleaned(
    z.toJSONSchema(schema, {
      target: 'openapi-3.0',
      io: 'input',
      override: ({ zodSchema, jsonSchema }) => {
        const complaint = complaintOf(zodSchema);
        if (complaint !== undefined) Object.assign(jsonSchema, { [patternComplaint]: complaint });
      },
    }),
  );
}

/**
 * Keyword beside `pattern`: the API server's message for a value that does not match. The pattern then becomes a CEL rule,
 * since the server's own words for a pattern are the pattern.
 */
const patternComplaint = 'x-posthorn-pattern-complaint';

/** zod's message for a text that does not match its pattern. */
function complaintOf({ _zod: { def } }: z.core.$ZodType): string | undefined {
  for (const check of def.checks ?? []) {
    const { format, error }: { format?: string; error?: z.core.$ZodErrorMap<never> | undefined } = check._zod.def;
    // It is a text that is always the same, whatever the issue.
    const complaint = format === 'regex' ? error?.({} as never) : undefined;
    if (complaint != null) return typeof complaint === 'string' ? complaint : complaint.message;
  }
  return undefined;
}

const propertyOrder = ['description', 'type', 'format', 'nullable', 'default', 'enum'];

function cleaned(given: object): StructuralSchema {
  const node = withComplaint(given);
  const entries = Object.entries(node).flatMap(([keyword, value]): [string, unknown][] => {
    switch (keyword) {
      case '$schema':
      case 'additionalProperties':
        return value === false || keyword === '$schema' ? [] : [[keyword, cleaned(value)]];
      case 'anyOf':
        // A number or a text: Kubernetes has a keyword of its own.
        return 'x-kubernetes-int-or-string' in node ? [] : [[keyword, value]];
      case 'properties':
        return [
          [
            keyword,
            Object.fromEntries(Object.entries(value).map(([name, property]) => [name, isRecord(property) ? cleaned(property) : property])),
          ],
        ];
      case 'items':
        return [[keyword, isRecord(value) ? cleaned(value) : value]];
      default:
        return [[keyword, value]];
    }
  });
  return Object.fromEntries(entries.sort(([one], [other]) => rank(one) - rank(other)));
}

function withComplaint(node: object): object {
  const { [patternComplaint]: message, ...withPattern }: StructuralSchema = { ...node };
  const { pattern, ...rest } = withPattern;
  // CEL sees a text with a format as another type.
  if (typeof pattern !== 'string' || message === undefined || 'format' in rest) return withPattern;
  const literal = pattern.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
  return { ...rest, 'x-kubernetes-validations': [{ rule: `self.matches('${literal}')`, message }] };
}

function rank(keyword: string): number {
  const index = propertyOrder.indexOf(keyword);
  if (index >= 0) return index;
  return ['properties', 'required', 'items'].includes(keyword) ? propertyOrder.length + 1 : propertyOrder.length;
}

/** Writes the rules of a kind into the schema of its spec, each at the path `at`. */
export function addRules(spec: StructuralSchema, rules: readonly Rule[]): void {
  for (const rule of rules) {
    const node = nodeAt(spec, rule.at);
    if ('schema' in rule) {
      Object.assign(node, rule.schema);
      continue;
    }
    const known = node['x-kubernetes-validations'];
    const validation = {
      rule: rule.cel,
      message: rule.message,
      ...(rule.fieldPath !== undefined && { fieldPath: rule.fieldPath }),
      ...(rule.transition === true && { reason: 'FieldValueForbidden' }),
    };
    node['x-kubernetes-validations'] = [...(Array.isArray(known) ? known : []), validation];
  }
}

function nodeAt(root: StructuralSchema, at: string): StructuralSchema {
  let node = root;
  for (const part of at.split('.').filter((each) => each !== '')) {
    const properties = node['properties'];
    const name = part.replace(/\[\]$/, '');
    const property = isRecord(properties) ? properties[name] : undefined;
    const next = isRecord(property) && part !== name ? property['items'] : property;
    if (!isRecord(next)) throw new Error(`a rule is at ${at}, which the schema does not have`);
    node = next;
  }
  return node;
}
