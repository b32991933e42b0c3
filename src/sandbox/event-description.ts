export interface DescribedEvent {
  id: string;
  /** Slug. */
  source: string;
  receivedAtMs: number;
  method: string;
  contentType: string;
  headers: readonly (readonly [string, string])[];
}

/** JSON text of what a transform sees besides the payload. Headers that came several times are joined as in HTTP. */
export function describeEvent({ id, source, receivedAtMs, method, contentType, headers }: DescribedEvent): string {
  const joined = new Map<string, string>();
  for (const [name, value] of headers) {
    const before = joined.get(name);
    joined.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const receivedAt = new Date(receivedAtMs).toISOString();
  return JSON.stringify({ id, source, receivedAt, method, contentType, headers: Object.fromEntries(joined) });
}
