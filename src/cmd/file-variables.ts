import { readFileSync } from 'node:fs';

/** Variables whose value may be in a file that `<name>_FILE` names. The variable itself takes precedence over the file. */
const fileVariables = [
  'POSTHORN_REDIS_URL',
  'POSTHORN_REDIS_SENTINEL_PASSWORD',
  'POSTHORN_API_KEY',
  'POSTHORN_ENCRYPTION_KEYS',
  'POSTHORN_CONSOLE_VIEWS',
] as const;
/** Optional files: without one there is no such value. */
const optionalFiles: ReadonlySet<string> = new Set(['POSTHORN_REDIS_SENTINEL_PASSWORD']);

/** Returns the text of a file without the line break at its end; null: it cannot be read. */
export type ReadText = (file: string) => string | null;

/** The environment with the values that files hold, and what is wrong with these files. */
export function withFileVariables(
  environment: Record<string, string>,
  read: ReadText,
): { environment: Record<string, string>; mistakes: string[] } {
  const values = { ...environment };
  const mistakes: string[] = [];
  for (const name of fileVariables) {
    const file = environment[`${name}_FILE`];
    if (file === undefined || values[name] !== undefined) continue;
    const text = read(file);
    if (text !== null && text !== '') values[name] = text;
    else if (!optionalFiles.has(name)) mistakes.push(`${name}_FILE: ${file} ${text === null ? 'cannot be read' : 'is empty'}`);
  }
  return { environment: values, mistakes };
}

export const readTextFile: ReadText = (file) => {
  try {
    return withoutLineBreak(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
};

export function withoutLineBreak(text: string): string {
  return text.replace(/\r?\n$/, '');
}
