import { withoutByteOrderMark } from './payload-text.ts';
import { parsePlainJson } from './plain-json.ts';

/** Returns what is used of the JSON key of a service account of Google Cloud; null: the text is none. */
export function serviceAccountIn(text: string): { email: string; privateKey: string } | null {
  try {
    const key: unknown = parsePlainJson(withoutByteOrderMark(text));
    if (typeof key !== 'object' || key === null || !('client_email' in key) || !('private_key' in key)) return null;
    const { client_email: email, private_key: privateKey } = key;
    return typeof email === 'string' && typeof privateKey === 'string' ? { email, privateKey } : null;
  } catch {
    return null;
  }
}
