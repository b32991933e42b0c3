import type { Socket } from 'node:net';
import { Command } from 'ioredis';
import type { RedisClient } from './connection.ts';

const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/** A SET that writes its value as it is: ioredis would copy it into one buffer with the rest of the command. */
class UncopiedSet extends Command {
  readonly #head: string;
  readonly #value: Buffer;
  readonly #tail: string;

  constructor(key: string, value: Buffer, options: readonly string[]) {
    super('set', [key, value, ...options]);
    this.#head = `*${3 + options.length}\r\n${bulk('set')}${bulk(key)}$${value.length}\r\n`;
    this.#value = value;
    this.#tail = `\r\n${options.map(bulk).join('')}`;
  }

  /** Its return value is written behind what it has written itself. */
  override toWritable(socket: Socket): string {
    socket.cork();
    socket.write(this.#head);
    socket.write(this.#value);
    process.nextTick(() => socket.uncork());
    return this.#tail;
  }
}

/** SET with these options for a value of many bytes, which must stay as it is until that is done. */
export async function setUncopied(redis: RedisClient, key: string, value: Buffer, options: readonly (string | number)[]): Promise<void> {
  const command = new UncopiedSet(key, value, options.map(String));
  await Promise.all([redis.sendCommand(command), command.promise]);
}
