import type { WarehouseLayout } from '../../core/records.ts';
import type { ArchivedMessage } from '../../data/history/message-archive.ts';
import type { StoredObject } from '../targets/warehouse/object-writer.ts';
import { PartitionedObjects, prefixParts } from '../targets/warehouse/partitioned-objects.ts';
import { archiveRecord } from './archive-record.ts';

/** Yields to other work after so many bytes. */
const bytesPerTurn = 262_144;

/** The objects of a batch, `{prefix}/archive/{table}/date=…/{batch}.jsonl`, and how many messages they hold. */
export async function archiveContent(
  batchId: string,
  { prefix, fileFormat }: WarehouseLayout,
  messages: AsyncIterable<ArchivedMessage>,
): Promise<{ objects: StoredObject[]; count: number }> {
  const objects = new PartitionedObjects(batchId, fileFormat);
  let [count, bytes] = [0, 0];
  for await (const message of messages) {
    const { table, date, json } = archiveRecord(message);
    const record = Buffer.from(json);
    objects.add([...prefixParts(prefix), 'archive', table, `date=${date}`].join('/'), record);
    count++;
    bytes += record.length;
    if (bytes < bytesPerTurn) continue;
    bytes = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { objects: objects.take(), count };
}
