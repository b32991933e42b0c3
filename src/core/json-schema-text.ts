import { canonicalJsonWithin } from './canonical-json.ts';

const maxBytes = 65_536;

/** The JSON text of a schema, the same for equal schemas; null when it is too large. */
export function jsonSchemaText(schema: unknown): string | null {
  return canonicalJsonWithin(schema, maxBytes);
}
