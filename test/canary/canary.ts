import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { base32 } from '../../src/core/ids.ts';
import { serviceAccountKey } from '../support/service-account.ts';

/** A secret that is nowhere else, and how to find it whatever has been done to its text. */
export interface Canary {
  /** Where it was put. */
  field: string;
  value: string;
  /** Texts of which none may be found. */
  needles: readonly string[];
}

/** A canary in the form of the field, or plain text where that breaks the form. */
export function newCanary(field: string, name: string, options: { malformed?: boolean } = {}): Canary {
  const marker = `canary${base32(randomBytes(25)).slice(0, 26)}`;
  const value = options.malformed === true ? marker : formed(field, name, marker);
  const inner = name === 'clientKey' && value !== marker ? value.split('\n').slice(1, -2).join('').slice(20, 60) : marker.slice(8, 28);
  return { field, value, needles: formsOf(inner) };
}

/** A secret that Posthorn has made and shown once: its text, and the bytes that a Standard Webhooks secret is. */
export function shownSecret(field: string, value: string): Canary {
  const encoded = value.replace(/^whsec_/, '');
  // The first characters are shown for good, so that people recognize it.
  const text = encoded.slice(4, 34);
  const bytes = encoded === value ? [] : [Buffer.from(encoded, 'base64').toString('hex')];
  return { field, value, needles: [...formsOf(text), ...bytes] };
}

/** Values of the environment variables that hold secrets, by the name of the variable. */
export function environmentOf(put: (field: string, name: string) => string): Record<string, string> {
  const key = put('POSTHORN_ENCRYPTION_KEYS', 'encryptionKey');
  return {
    POSTHORN_ENCRYPTION_KEYS: `k1:${Buffer.from(key).toString('base64')}`,
    POSTHORN_API_KEY: `ph_${put('POSTHORN_API_KEY', 'apiKey')}`,
    POSTHORN_SMTP_HOST: '127.0.0.1',
    POSTHORN_SMTP_PORT: '9',
    POSTHORN_SMTP_FROM: 'Posthorn <alerts@example.com>',
    POSTHORN_SMTP_USER: 'posthorn',
    POSTHORN_SMTP_PASSWORD: put('POSTHORN_SMTP_PASSWORD', 'password'),
    POSTHORN_EGRESS_PROXY_URL: `http://posthorn:${put('POSTHORN_EGRESS_PROXY_URL', 'password')}@127.0.0.1:9`,
  };
}

function formed(field: string, name: string, marker: string): string {
  switch (name) {
    case 'signingSecret':
    case 'previousSecret':
    case 'secret':
      return `whsec_${Buffer.from(marker).toString('base64')}`;
    case 'signingKey':
      // The 32 bytes of a marker are the seed of a key.
      return `whsk_${Buffer.from(marker).toString('base64')}`;
    case 'clientKey':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    case 'webhookUrl':
      return `https://${field.includes('discord') ? 'discord.com/api/webhooks' : 'hooks.slack.com/services'}/T0/B0/${marker}`;
    case 'accountKey':
      return Buffer.from(marker.padEnd(64, '=')).toString('base64');
    case 'serviceAccountKey':
      return serviceAccountKey({ private_key_id: marker });
    default:
      return marker;
  }
}

/** The text itself, in hex, in base64 at each of the three offsets where it can begin, and in base64 of that base64. */
function formsOf(text: string): string[] {
  const once = base64At(text);
  const hex = Buffer.from(text).toString('hex');
  return [text, hex, hex.toUpperCase(), ...once, ...once.flatMap(base64At)];
}

function base64At(text: string): string[] {
  return [0, 1, 2].map((offset) => {
    const encoded = Buffer.from(' '.repeat(offset) + text).toString('base64');
    // The first and the last group also hold bits of the neighbouring text.
    return encoded.slice(offset === 0 ? 0 : 4, Math.floor((offset + text.length) / 3) * 4);
  });
}

/** Which canaries are in the bytes, by field; empty when none is. */
export function found(canaries: readonly Canary[], bytes: Buffer): string[] {
  return canaries.flatMap(({ field, needles }) => {
    const needle = needles.find((each) => bytes.includes(each));
    return needle === undefined ? [] : [`${field} as ${JSON.stringify(contextOf(bytes, needle))}`];
  });
}

function contextOf(bytes: Buffer, needle: string): string {
  const at = bytes.indexOf(needle);
  return bytes.subarray(Math.max(0, at - 120), at + 60).toString('latin1');
}
