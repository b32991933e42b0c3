/** The text at the path (`issue.updated_at`) of a JSON document, when it is one and not empty. */
export function textAt(payload: unknown, path: string): string | null {
  let value = payload;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null;
    value = Reflect.get(value, name);
  }
  return typeof value === 'string' && value !== '' ? value : null;
}
