import { z } from 'zod';
import { isRecord } from './field-tree.ts';

/**
 * Bounds of what a schema validates as one value. A schema makes an issue of every part that is wrong, each of about 5 µs; no valid value is
 * near these bounds.
 */
const validationLimits = {
  unknownKeys: 100,
  recordKeys: 1000,
  arrayItems: 1000,
  /** Values that are validated one by one; an unvalidated subtree counts as one. */
  values: 5000,
};

/** Why a value is too large to be validated: some of its unknown keys, or the error of the part at `path`. */
export type Excess = { path: readonly PropertyKey[]; keys: readonly string[] } | { path: readonly PropertyKey[]; message: string };

type Shape =
  | { type: 'leaf' }
  | { type: 'object'; isStrict: boolean; fields: ReadonlyMap<string, Shape> }
  | { type: 'record'; values: Shape }
  | { type: 'array'; items: Shape; maxItems: number | null }
  | { type: 'union'; options: readonly Shape[] };

const leaf: Shape = { type: 'leaf' };
const none: readonly string[] = [];
const shapes = new WeakMap<z.core.$ZodType, Shape>();

/** Reads no more of the value than is validated; null: the schema may validate it. Fields in `ignored` are no unknown keys of the value itself. */
export function excessIn(schema: z.core.$ZodType, value: unknown, ignored: readonly string[] = []): Excess | null {
  let count = 0;

  // The path is made where there is an excess: nearly always there is none.
  const visit = (shape: Shape, part: unknown, ignoredHere: readonly string[]): Excess | null => {
    if (++count > validationLimits.values)
      return { path: [], message: `is one value too many: at most ${validationLimits.values} are validated` };
    switch (shape.type) {
      case 'leaf':
        return null;
      case 'union': {
        for (const option of shape.options) {
          const found = visit(option, part, ignoredHere);
          if (found !== null) return found;
        }
        return null;
      }
      case 'array': {
        if (!Array.isArray(part)) return null;
        if (shape.maxItems !== null && part.length > Math.max(shape.maxItems, validationLimits.arrayItems))
          return { path: [], message: `must be at most ${shape.maxItems} items long` };
        for (let i = 0; i < part.length; i++) {
          const found = visit(shape.items, part[i], none);
          if (found !== null) return below(i, found);
        }
        return null;
      }
      case 'record': {
        if (!isRecord(part)) return null;
        const keys = Object.keys(part);
        if (keys.length > validationLimits.recordKeys)
          return { path: [], message: `must have at most ${validationLimits.recordKeys} members` };
        for (const key of keys) {
          const found = visit(shape.values, part[key], none);
          if (found !== null) return below(key, found);
        }
        return null;
      }
      case 'object':
        return isRecord(part) ? visitObject(shape, part, ignoredHere) : null;
    }
  };

  const visitObject = (
    { isStrict, fields }: Extract<Shape, { type: 'object' }>,
    part: Record<string, unknown>,
    ignoredHere: readonly string[],
  ): Excess | null => {
    const unknown: string[] = [];
    if (isStrict)
      for (const key in part) {
        if (fields.has(key) || ignoredHere.includes(key)) continue;
        unknown.push(key);
        if (unknown.length > validationLimits.unknownKeys) return { path: [], keys: unknown };
      }
    for (const [name, field] of fields) {
      const found = Object.hasOwn(part, name) ? visit(field, part[name], none) : null;
      if (found !== null) return below(name, found);
    }
    return null;
  };

  return visit(shapeOf(schema), value, ignored);
}

/** An excess of the member `key`, as one of its container. */
function below(key: PropertyKey, excess: Excess): Excess {
  return { ...excess, path: [key, ...excess.path] };
}

function shapeOf(schema: z.core.$ZodType): Shape {
  const known = shapes.get(schema);
  if (known !== undefined) return known;
  const shape = newShape(schema);
  shapes.set(schema, shape);
  return shape;
}

function newShape(schema: z.core.$ZodType): Shape {
  // Optional, required, default, nullable and the like.
  if ('innerType' in schema._zod.def) return shapeOf(schema._zod.def.innerType as z.core.$ZodType);
  if (schema instanceof z.ZodPipe) return shapeOf(schema.in);
  if (schema instanceof z.ZodUnion) return { type: 'union', options: schema.options.map(shapeOf) };
  if (schema instanceof z.ZodArray) return { type: 'array', items: shapeOf(schema.element), maxItems: maxItemsOf(schema) };
  if (schema instanceof z.ZodRecord) return { type: 'record', values: shapeOf(schema.valueType) };
  if (!(schema instanceof z.ZodObject)) return leaf;
  const fields = Object.entries<z.core.$ZodType>(schema.shape).map(([name, field]) => [name, shapeOf(field)] as const);
  return { type: 'object', isStrict: schema.def.catchall instanceof z.ZodNever, fields: new Map(fields) };
}

function maxItemsOf(schema: z.ZodArray): number | null {
  const check = schema.def.checks?.find((each) => each instanceof z.core.$ZodCheckMaxLength);
  return check instanceof z.core.$ZodCheckMaxLength ? check._zod.def.maximum : null;
}
