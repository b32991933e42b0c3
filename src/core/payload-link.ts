import { z } from 'zod';
import { parsePlainJson } from './plain-json.ts';
import type { Keyring, SealingContext } from './sealing.ts';

/** Body of a delivery: the payload, or a small JSON object with a link to it. */
export const payloadForms = ['full', 'thin'] as const;
export type PayloadForm = (typeof payloadForms)[number];

export const defaultPayloadForm: PayloadForm = 'full';

/** Why there is no thin form without an address; it continues a sentence. */
export const needsPublicUrl = 'needs the public address of the installation, POSTHORN_PUBLIC_URL, which is not set';

/** Below the public address of the installation. */
export const payloadLinkPath = '/api/payload';

/** Validity of a link after the attempt. */
export const payloadLinkMs = 7 * 86_400_000;

/**
 * The payload of a test is in its link, because a test is not stored. As a JSON string it has at most so many bytes, so that the URL stays below 8 KiB, to which
 * many proxies limit a request line.
 */
export const maxTestPayloadBytes = 4096;

/** Target of a link. */
export interface LinkedPayload {
  /** As the message names it: `core/webhook.ts`. */
  org: string;
  /** Null: the payload of a test. */
  message: {
    id: string;
    /** The route or the transform whose output replaces the payload; null: the payload as received. */
    outputOf: string | null;
    /** The content type and the coding that the target sets itself; null: those of the payload. */
    contentType: string | null;
    contentEncoding: string | null;
  } | null;
  /** The payload of a test. */
  payload: string | null;
}

const content = z.object({
  o: z.string().min(1),
  x: z.number(),
  m: z.string().optional(),
  r: z.string().optional(),
  c: z.string().optional(),
  e: z.string().optional(),
  p: z.string().optional(),
});

/** The organization is in the token: who follows the link does not name it. Nothing else is sealed for this kind. */
const context: SealingContext = { organization: '', kind: 'PayloadLink', name: 'link', field: 'token' };

/** Makes the links of thin deliveries. A token is sealed: others cannot make, change or read one, and it opens for as long as its key is in the keyring. */
export class PayloadLinks {
  readonly #publicUrl: string;
  readonly #keyring: Keyring;

  /** `publicUrl`: of the API, without a slash at its end. */
  constructor(publicUrl: string, keyring: Keyring) {
    this.#publicUrl = publicUrl;
    this.#keyring = keyring;
  }

  make({ org, message, payload }: LinkedPayload, nowMs: number): { url: string; token: string } {
    const text = JSON.stringify({
      o: org,
      x: nowMs + payloadLinkMs,
      m: message?.id,
      r: message?.outputOf ?? undefined,
      c: message?.contentType ?? undefined,
      e: message?.contentEncoding ?? undefined,
      p: payload ?? undefined,
    } satisfies z.input<typeof content>);
    const token = this.#keyring.seal(text, context);
    return { url: `${this.#publicUrl}${payloadLinkPath}?token=${token}`, token };
  }
}

/** Target of a link's token; null: this installation has not made it. */
export function linkedPayload(token: string, keyring: Keyring): (LinkedPayload & { expiresAtMs: number }) | null {
  try {
    const { o, x, m, r = null, c = null, e = null, p = null } = content.parse(parsePlainJson(keyring.open(token, context)));
    const message = m === undefined ? null : { id: m, outputOf: r, contentType: c, contentEncoding: e };
    return { org: o, message, payload: p, expiresAtMs: x };
  } catch {
    return null;
  }
}
