import { hash, randomBytes } from 'node:crypto';
import { base32 } from './ids.ts';

/** A new API key: `ph_` + base32 of 32 random bytes. Only `sha256` and `prefix` may be stored. */
export function newApiKey(): { key: string; sha256: string; prefix: string } {
  const key = `ph_${base32(randomBytes(32))}`;
  return { key, sha256: hashApiKey(key), prefix: apiKeyPrefix(key) };
}

/** Hex SHA-256 of the whole key: what is stored, and what it is found by. */
export function hashApiKey(key: string): string {
  return hash('sha256', key, 'hex');
}

/** The characters of a key that may be shown, to distinguish keys: at most a quarter of it. */
export function apiKeyPrefix(key: string): string {
  return key.slice(0, Math.min(10, Math.floor(key.length / 4)));
}
