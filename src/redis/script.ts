import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { RedisClient } from './connection.ts';

export type ScriptArgument = string | number | Buffer;

/**
 * A Lua file, sent once per server and called by its SHA-1 from then on. A line `-- @include "<file>"` is replaced by that
 * file, relative to the one it stands in.
 */
export class Script {
  readonly #parts: readonly string[];
  /** By which Redis knows it. */
  readonly sha: string;

  /** `file`: URL of the .lua file, as `new URL('./scripts/accept.lua', import.meta.url)`. */
  constructor(file: URL) {
    this.#parts = partsOf(file);
    this.sha = createHash('sha1').update(this.#text).digest('hex');
  }

  /** Runs the script; strings in the reply are decoded as UTF-8. */
  async run(redis: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return this.#call(redis, 'call', keys, args);
  }

  /** Runs the script; strings in the reply are Buffers. */
  async runBuffer(redis: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return this.#call(redis, 'callBuffer', keys, args);
  }

  get #text(): string {
    return this.#parts.join('');
  }

  async #call(
    redis: RedisClient,
    method: 'call' | 'callBuffer',
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args];
    try {
      return await redis[method]('EVALSHA', this.sha, ...rest);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return await redis[method]('EVAL', this.#text, ...rest);
    }
  }
}

const known = new Map<string, readonly string[]>();

/** The text of a file, its includes in their places; scripts share those in memory, which are most of most scripts. */
function partsOf(file: URL): readonly string[] {
  const parts =
    known.get(file.href) ??
    readFileSync(file, 'utf8')
      .split(/^-- @include "(.+)"$/m)
      .flatMap((part, i) => (i % 2 === 0 ? part : partsOf(new URL(part, file))));
  known.set(file.href, parts);
  return parts;
}
