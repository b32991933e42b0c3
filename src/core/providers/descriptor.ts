import type { IncomingHttpHeaders } from 'node:http';
import type { SignatureFailure } from './signature-failure.ts';

/** A request as a signature covers it. */
export interface SignedRequest {
  /** The organization that it was sent to. */
  organization: string;
  /** The source of it. */
  source?: string;
  headers: IncomingHttpHeaders;
  /** The exact bytes that came. */
  body: Buffer;
  /** Milliseconds since the epoch. */
  nowMs: number;
  /** Path and query, as they came. */
  path: string;
  /** Address of the installation, such as `https://hooks.example.com`, if it is configured. */
  publicUrl: string | undefined;
}

/** Signed content: the text, and the bytes behind it. The same for every form of the request that the signature fits. */
export interface SignedContent {
  prefix: string;
  body: Buffer;
}

/** Result for a request that a secret of the source vouches for. `signed` null: the sender showed the secret itself, which covers nothing. */
export interface Verification {
  signed: SignedContent | null;
}

/** Returns why when none of the source's secrets vouches for the request. Yields between two pieces of a large body, and a promise of what runs elsewhere. */
export type Verifier = (request: SignedRequest) => Generator<Promise<void> | undefined, Verification | SignatureFailure>;

export function isVerified(result: Verification | SignatureFailure): result is Verification {
  return 'signed' in result;
}

/** How a sender of provider `custom` signs: an HMAC of the body in a header. */
export interface SignatureScheme {
  algorithm: 'sha1' | 'sha256' | 'sha512';
  /** Lower case. */
  header: string;
  encoding: 'hex' | 'base64';
  /** Precedes the signature in the header; may be empty. */
  prefix: string;
}

/** Where a provider puts an id. Bodies are signed, headers are not, unless specified. */
export type DeliveryId = { header: string; isSigned?: true } | { field: string };

/** Which signed contents no two events of a provider share, although neither an id nor a time is signed. */
export interface DistinctContents {
  /** Fields of the signed body whose values are unique to one event. */
  fields: readonly string[];
  /** Values of `action` in the body with which those fields stay as they were. */
  exceptActions?: readonly string[];
  /** Header with the type of the body, where one body is sent for several events. */
  kindHeader?: string;
}

/** A request that is no event: a provider checks reachability before it sends events. */
export type ProviderHandshake =
  /** A body of this type with a `challenge`, which is sent back as JSON. */
  | { type: 'challenge_body'; bodyType: string }
  /** A request of this method, which is answered 200. */
  | { type: 'method'; method: string };

/** A supported sender of webhooks: everything that depends on `spec.provider` of a Source. */
export interface ProviderDescriptor {
  /** Name of the sender for its users. */
  title: string;
  /** Page on which the sender describes its signatures; null: there is no such page. */
  url: string | null;
  /**
   * Makes the check of a source's requests. `secrets`: as the provider shows them to its users, one, or two while a rotation lasts; empty ones count as none.
   * `scheme`: of `custom`.
   */
  verifier: (secrets: readonly string[], scheme: SignatureScheme | undefined) => Verifier;
  secret: {
    /** `standard-webhooks`: `whsec_` and the base64 of 24 to 64 bytes, or `whpk_` and the base64 of an Ed25519 public key; several, separated by white space. */
    style: 'text' | 'standard-webhooks';
    /** Whether a secret that Posthorn makes can be entered at the provider; otherwise the provider makes it. */
    isOurs: boolean;
  };
  /** Locations of an id that is the same when the provider sends a delivery again. The first that exists counts; empty: it has no such id. */
  deliveryIds: readonly DeliveryId[];
  /** Which signed contents identify one event. `always`: an id, or a time, is signed; `never`: senders decide what they send. */
  distinctContents: 'always' | 'never' | DistinctContents;
  handshake?: ProviderHandshake;
  /** Markdown for docs/providers.md. */
  docs: {
    header: string;
    signed: string;
    /** Which secret of the provider is meant. */
    secret: string;
    /** Events that are known again by what is signed. */
    recognized: string;
    /** Events that are known by their delivery id alone. */
    unrecognized: string;
  };
}
