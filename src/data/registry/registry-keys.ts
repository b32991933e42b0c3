import type { RecordKind } from '../../core/records.ts';

/** Names of the registry's keys; the layout is described in `registry.ts`. */
export interface RegistryKeys {
  marker: string;
  complete: string;
  layout: string;
  installation: string;
  epoch: string;
  sequence: string;
  changes: string;
  owners: string;
  records(kind: RecordKind): string;
  index(name: string): string;
}

/** `prefix` precedes every key, so that installations can share a Redis; may be empty. */
export function registryKeys(prefix: string): RegistryKeys {
  const base = `${prefix}{cfg}:`;
  return {
    marker: `${base}marker`,
    complete: `${base}complete`,
    layout: `${base}layout`,
    installation: `${base}installation`,
    epoch: `${base}epoch`,
    sequence: `${base}seq`,
    changes: `${base}changes`,
    owners: `${base}owners`,
    records: (kind) => `${base}rec:${kind}`,
    index: (name) => `${base}ix:${name}`,
  };
}

/** Fields of the entries of a stream of changes (`change-stream.ts`); scripts name them `F.change_entry.marker`. */
export const registryFields = { changeEntry: { marker: 'm', key: 'k' } } as const;
