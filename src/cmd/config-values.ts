import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { isUsableUrl } from '../core/url-problem.ts';
import { redisNodes } from '../redis/address.ts';
import { hostPattern } from '../resources/host-pattern.ts';

const serviceLink = /^tcp:\/\//;
export const portNumber = z
  .string()
  .regex(/^\d{1,5}$/, 'must be a port number')
  .transform(Number)
  .refine((port) => port <= 65_535, 'must be at most 65535');
// Kubernetes sets POSTHORN_PORT=tcp://… in every pod beside a Service named posthorn, and POSTHORN_INGEST_PORT beside posthorn-ingest; that is
// no configured port.
const chosenPort = (value: unknown): unknown => (typeof value === 'string' && serviceLink.test(value) ? undefined : value);
export const port = (fallback: number) =>
  z.preprocess(chosenPort, portNumber.refine((number) => number > 0, 'must not be 0').default(fallback));
export const optionalPort = z.preprocess(chosenPort, portNumber.optional());

export const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be between ${least} and ${most}`);

export const count = (least: number, most: number, fallback: number) => wholeNumber(least, most).default(fallback);

const byteUnits: Record<string, number> = { '': 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 };
export const byteCount = z
  .string()
  .regex(/^[1-9]\d{0,11}(kb|mb|gb)?$/, 'must be a number of bytes, as 500mb or 4gb')
  .transform((text) => Number.parseInt(text, 10) * (byteUnits[text.replace(/^\d+/, '')] ?? 1));

export const cidrList = z
  .string()
  .transform((text) => splitList(text))
  .refine((list) => list.every(isCidr), 'must be CIDRs separated by commas, such as 10.0.0.0/8,fd00::/8')
  .default([]);

export const hostList = z
  .string()
  .transform((text) => splitList(text))
  .refine(
    (list) => list.every((host) => hostPattern.safeParse(host).success),
    'must be host names separated by commas; *. may precede each',
  )
  .default([]);

const listedHost = /^(?:([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)\/)?(\*|(?:\*\.)?[^\s*/:?#,[\]]+|\[[0-9A-Fa-f:.]+\])$/;

/** `-`: none. */
export const listedHosts = z
  .string()
  .transform((text) => (text.trim() === '-' ? [] : splitList(text)))
  .refine(
    (list) => list.every((entry) => listedHost.test(entry)),
    'must be hosts separated by commas, such as hooks.example.com,*.example.com,acme/hooks.acme.example; * means all and - means none',
  )
  .transform((list) =>
    list.map((entry) => {
      const [, organization, pattern = ''] = listedHost.exec(entry) ?? [];
      return { organization: organization ?? null, pattern: pattern.toLowerCase().replace(/^\[|\]$|\.$/g, '') };
    }),
  );

export const redisUrl = z
  .string()
  .superRefine((url, context) => {
    try {
      redisNodes(url);
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof Error ? error.message : String(error) });
    }
  })
  .optional();

/** To which clients, or this process, can connect. */
export const connectableUrl = z.url({ protocol: /^https?$/ }).refine(isUsableUrl, 'must not have port 0');

export const proxyUrl = connectableUrl.refine((url) => {
  try {
    const { username, password } = new URL(url);
    return decodeURIComponent(username + password).length >= 0;
  } catch {
    return false;
  }
}, 'must have user and password percent-encoded');

export const flag = z.enum(['true', 'false']).transform((value) => value === 'true');

export const storeEndpoint = connectableUrl.optional();

/** As POSTHORN_API_KEY has it. */
export const adminApiKey = z
  .string()
  .min(32, 'must have at least 32 characters, so that it cannot be guessed')
  .max(512)
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without blanks');

/** Keys as POSTHORN_ENCRYPTION_KEYS has them. */
export const encryptionKeys = z
  .string()
  .transform((text) => splitList(text).map(parseKey))
  .refine((keys) => keys.length > 0 && keys.every((key) => key !== null), 'must be id:base64[,id:base64…] with keys of 32 bytes')
  .transform((keys) => keys.filter((key) => key !== null));

/** Seconds from one attempt to the next, in order. */
export const retryDelays = z
  .string()
  .transform((text) => splitList(text).map((seconds) => (/^\d{1,6}$/.test(seconds) ? Number(seconds) * 1000 : Number.NaN)))
  .refine(
    (delays) => delays.length <= 25 && delays.every((ms) => ms <= 86_400_000),
    'must be at most 25 whole numbers of seconds separated by commas, each at most 86400',
  )
  .optional();

export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function isCidr(text: string): boolean {
  try {
    ipaddr.parseCIDR(text);
    return true;
  } catch {
    return false;
  }
}

function parseKey(text: string): { id: string; key: Buffer } | null {
  const match = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(text);
  return match?.[1] === undefined || match[2] === undefined ? null : { id: match[1], key: Buffer.from(match[2], 'base64') };
}
