import type { WarehouseLayout } from '../../../core/records.ts';
import type { StoredObject } from './object-writer.ts';

const contentTypes = { jsonl: 'application/x-ndjson', json: 'application/json' };

/** Records gathered into objects, one per partition: the same bytes under the same keys for the same records. */
export class PartitionedObjects {
  /** A ULID: the last part of the keys. */
  readonly #id: string;
  readonly #fileFormat: WarehouseLayout['fileFormat'];
  readonly #partitions = new Map<string, Buffer[]>();
  #bytes = 0;

  constructor(id: string, fileFormat: WarehouseLayout['fileFormat']) {
    this.#id = id;
    this.#fileFormat = fileFormat;
  }

  /** Size of all records. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `record`: JSON without line breaks; `path`: of the partition, without a slash at its end. */
  add(path: string, record: Buffer): void {
    this.#bytes += record.length;
    const records = this.#partitions.get(path);
    if (records === undefined) this.#partitions.set(path, [record]);
    else records.push(record);
  }

  /** The objects of what was added, which is then forgotten. */
  take(): StoredObject[] {
    const isArray = this.#fileFormat === 'json';
    const before = Buffer.from(isArray ? '[' : '');
    const between = Buffer.from(isArray ? ',\n' : '\n');
    const after = Buffer.from(isArray ? ']\n' : '\n');
    const objects: StoredObject[] = [];
    for (const [path, records] of this.#partitions) {
      const body = Buffer.concat([before, ...records.flatMap((record, i) => (i === 0 ? [record] : [between, record])), after]);
      objects.push({ key: `${path}/${this.#id}.${this.#fileFormat}`, body, contentType: contentTypes[this.#fileFormat] });
      this.#partitions.delete(path);
    }
    this.#bytes = 0;
    return objects;
  }
}

/** The parts of a prefix that a key may contain. */
export function prefixParts(prefix: string): string[] {
  return prefix.split('/').filter((part) => part !== '' && part !== '.' && part !== '..');
}
