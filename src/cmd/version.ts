import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { parsePlainJson } from '../core/plain-json.ts';

/** The version of the program, from its package.json. */
export const version = z
  .object({ version: z.string() })
  .parse(parsePlainJson(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))).version;
