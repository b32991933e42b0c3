/** JSON text of an object that an event may hold, and the other fields of a body may not: deeply nested, with keys named `__proto__`. */
export function anyPayload(): string {
  return `{"__proto__":{"a":1},"deep":${'{"__proto__":'.repeat(400)}7${'}'.repeat(400)}}`;
}
