import { readFileSync } from 'node:fs';
import { PosthornError } from '../core/errors.ts';

/** The text of a PEM file. Throws INVALID_CONFIG, naming the setting, when it cannot be read or holds no such thing. */
export function readPem(file: string, label: 'CERTIFICATE' | 'PRIVATE KEY', setting: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new PosthornError('INVALID_CONFIG', `${setting}: ${file} cannot be read`, { cause });
  }
  if (new RegExp(`-----BEGIN ([A-Z]+ )?${label}-----`).test(text)) return text;
  throw new PosthornError('INVALID_CONFIG', `${setting}: ${file} holds no ${label.toLowerCase()}`);
}
