import { PosthornError } from '../../core/errors.ts';
import { parseJson } from '../../core/read-json.ts';
import { type RecordByKind, type RecordKind, recordLayoutVersion } from '../../core/records.ts';

/**
 * A record as the publisher wrote it. Only the layout version is checked: only controllers write here, and a
 * controller writes only what its predecessor can read. Throws INTERNAL for a newer layout.
 */
export function parseRecord<K extends RecordKind>(kind: K, json: string): RecordByKind[K] {
  const record = parseJson(json) as RecordByKind[K];
  if (!(record.v <= recordLayoutVersion)) {
    throw new PosthornError(
      'INTERNAL',
      `the record ${kind} ${record.id} has layout ${record.v}; this release reads up to ${recordLayoutVersion}`,
    );
  }
  return record;
}
