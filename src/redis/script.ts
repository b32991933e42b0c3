import { createHash } from 'node:crypto';
import type { RedisClient } from './connection.ts';
import { scriptText } from './script-layout.ts';
import { expandScript, type FieldTables, type ScriptPart, snakeCase } from './script-text.ts';

export type ScriptArgument = string | number | Buffer;

/** A Lua file with its includes (`expandScript`), sent once per server and called by its SHA-1 from then on (docs/decisions/0005-evalsha-not-function.md). */
export class Script {
  /** Scripts share the texts of their includes in memory, which are most of most scripts. */
  readonly #parts: readonly ScriptPart[];
  /** By which Redis calls it. */
  readonly sha: string;

  /** `file`: URL of the .lua file, as `new URL('./scripts/accept.lua', import.meta.url)`; `tables`: of the fields that it names. */
  constructor(file: URL, tables?: FieldTables) {
    this.#parts = expandScript(file, tables);
    this.sha = createHash('sha1').update(scriptText(this.#parts)).digest('hex');
  }

  /** Runs the script; strings in the reply are decoded as UTF-8. */
  async run(redis: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return this.#call(redis, 'call', keys, args);
  }

  /** Runs the script; strings in the reply are Buffers. */
  async runBuffer(redis: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return this.#call(redis, 'callBuffer', keys, args);
  }

  async #call(
    redis: RedisClient,
    method: 'call' | 'callBuffer',
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<unknown> {
    // Arrays of thousands of arguments: each spread would be another copy.
    const head: ScriptArgument[] = [this.sha, keys.length];
    const sent = head.concat(keys, args);
    try {
      return await redis[method]('EVALSHA', sent);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
      return await redis[method]('EVAL', sent.with(0, scriptText(this.#parts)));
    }
  }
}

/**
 * The single argument of a script that takes its values by name: a JSON object, which the script reads with `decoded` (`src/redis/scripts/includes/json.lua`). Names are
 * written as Lua writes them: `cooldownMs` is `cooldown_ms` in the script. A null or undefined value is left out, and is nil there.
 * Throws for a number that is not finite.
 *
 * @example
 * await script.run(redis, keys, [namedArgument({ target: '7', cooldownMs: 300_000, batch: null })]);
 */
export function namedArgument(values: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(values, (name, value: unknown) => {
    if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${name} is ${value}`);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const named = Object.entries(value).filter(([, each]) => each !== null);
    return Object.fromEntries(named.map(([name, each]) => [snakeCase(name), each]));
  });
}
