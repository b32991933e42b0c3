/** The position of a reader: the epoch of its feeds, and in each shard the id of the row that it has read last. */
export interface FeedPosition {
  epoch: string;
  /** `<ms>-<number>` by shard. */
  rows: readonly string[];
}

const maxShards = 1296;
const form = /^[0-9a-f]{12}(?:~[0-9a-z]{1,9}(?:-[0-9a-z]{1,9})?)+$/;

/** The text of a row's id: base 36, without a number that is 0. */
export function positionPart(row: string): string {
  const [ms = '0', number = '0'] = row.split('-');
  return Number(ms).toString(36) + (number === '0' ? '' : `-${Number(number).toString(36)}`);
}

/** Joins an epoch and the parts of its shards. */
export function positionText(epoch: string, parts: readonly string[]): string {
  return `${epoch}~${parts.join('~')}`;
}

/** Null: no position at all. */
export function parsePosition(text: string): FeedPosition | null {
  if (!form.test(text)) return null;
  const [epoch = '', ...parts] = text.split('~');
  if (parts.length > maxShards) return null;
  const rows = parts.map((part) => {
    const [ms = '', number = '0'] = part.split('-');
    return `${Number.parseInt(ms, 36)}-${Number.parseInt(number, 36)}`;
  });
  return { epoch, rows };
}

/** Negative: `one` precedes `other`. */
export function compareRows(one: string, other: string): number {
  const [ms = 0, number = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherNumber = 0] = other.split('-').map(Number);
  return ms - otherMs || number - otherNumber;
}
