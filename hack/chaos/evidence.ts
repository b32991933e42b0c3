import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { recordLocation } from '../../src/data/shard/record-key.ts';
import { shardBase } from '../../src/data/shard/shard-keys.ts';
import type { RedisClient } from '../../src/redis/connection.ts';

const shown = 300;

/**
 * Returns the evidence about a message that `posthorn check` reports, as lines: its record in its home shard, its target, and the writes that name it in the
 * append-only files in this directory of Redis. The files have the writes since they were last rewritten.
 */
export async function evidenceOf(
  id: string,
  { redis, prefix, disk }: { redis: RedisClient; prefix: string; disk: string },
): Promise<string[]> {
  const place = recordLocation(id);
  if (place === null) return [];
  const base = shardBase(prefix, place.shard);
  const record = await redis.hgetall(`${base}m:${place.key}`);
  const target = await redis.hgetall(`${base}t:${record['t'] ?? ''}`);
  return [JSON.stringify({ record, target }), ...writesNaming(place.key, disk)];
}

function writesNaming(text: string, disk: string): string[] {
  const directory = join(disk, 'appendonlydir');
  const files = readdirSync(directory)
    .filter((name) => name.endsWith('.incr.aof'))
    .sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
  return files.flatMap((name) =>
    [...commandsOf(readFileSync(join(directory, name)))]
      .filter((command) => command.some((argument) => argument.includes(text)))
      .map((command) => command.map((argument) => argument.slice(0, shown)).join(' ')),
  );
}

/** Yields the commands of an append-only file: arrays of bulk strings. Skips annotations; a command that is cut off at the end lacks its last arguments. */
function* commandsOf(file: Buffer): Generator<string[]> {
  let at = 0;
  const line = (): string => {
    const end = file.indexOf('\r\n', at);
    const text = file.toString('latin1', at, end < 0 ? file.length : end);
    at = end < 0 ? file.length : end + 2;
    return text;
  };
  while (at < file.length) {
    const head = line();
    if (!head.startsWith('*')) continue;
    const command: string[] = [];
    for (let left = Number(head.slice(1)); left > 0 && at < file.length; left--) {
      const length = Number(line().slice(1));
      command.push(file.toString('latin1', at, at + length));
      at += length + 2;
    }
    yield command;
  }
}
