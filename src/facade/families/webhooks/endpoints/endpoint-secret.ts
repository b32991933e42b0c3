import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { ed25519Key, newSigningKey } from '../../../../core/ed25519-keys.ts';
import { isPosthornError, PosthornError } from '../../../../core/errors.ts';
import { webhookSecretSealingContext } from '../../../../core/sealing-contexts.ts';
import { signatureSchemes } from '../../../../core/signature-scheme.ts';
import type { WebhookEndpoint, WebhookSecret, WebhookSigningKey } from '../../../../data/webhooks/webhooks.ts';
import type { Call } from '../../../http/operation.ts';
import { operation } from '../../../http/operation.ts';
import { isoTime, isoTimeOrNull, timestamp } from '../../../records/record-fields.ts';
import { refuseManaged } from '../shared/managed.ts';
import { findEndpoint } from './find-endpoint.ts';

const defaultGraceSeconds = 3600;
const longestGraceSeconds = 86_400;
const shownCharacters = 'whsec_'.length + 4;
/** Each is one more signature of every message. */
const maxPrevious = 4;
const rotationAttempts = 5;
/** Characters of a request mark that each rotated endpoint keeps: 132 bits. */
const keptMarkCharacters = 22;

/** A new signing secret (Standard Webhooks). */
export function newEndpointSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** The secret as the store keeps it. */
export function sealedSecret(call: Call, endpointId: string, secret: string): Pick<WebhookSecret, 'sealed' | 'prefix'> {
  const context = webhookSecretSealingContext(call.caller.organization.id, endpointId);
  return { sealed: call.services.keyring.seal(secret, context), prefix: secret.slice(0, shownCharacters) };
}

/** A new Ed25519 key as the store keeps it. Only its public key is ever shown. */
export function newSealedKey(call: Call, endpointId: string): WebhookSigningKey {
  const text = newSigningKey();
  const key = ed25519Key(text);
  if (key.problem !== undefined) throw new Error(`a new signing key ${key.problem}`);
  const context = webhookSecretSealingContext(call.caller.organization.id, endpointId);
  return { sealed: call.services.keyring.seal(text, context), publicKey: key.publicKey, previous: [] };
}

/** The secret that an endpoint has. */
export function openedSecret({ services }: Call, { org, id, secret }: WebhookEndpoint): string {
  return services.keyring.open(secret.sealed, webhookSecretSealingContext(org, id));
}

const rotation = z
  .object({
    secret: z.string().describe('The new secret; shown only here.'),
    signatureScheme: z.enum(signatureSchemes).describe('What of secret and key signs; it does not change.'),
    publicKey: z.string().nullable().describe('The new public key, if the endpoint has an Ed25519 key, which is replaced, too.'),
    previousPublicKey: z
      .string()
      .nullable()
      .describe('The public key of the old one, which signs until previousSecretExpiresAt; null: there is none.'),
    previousSecretExpiresAt: timestamp.nullable().describe('null: the old secret has ended.'),
    secretVersion: z.int().min(1).describe('Grows with each rotation.'),
  })
  .meta({ id: 'RotatedEndpointSecret' });

export const rotateEndpointSecret = operation({
  method: 'POST',
  path: '/webhook-endpoints/{id}/rotate-secret',
  operationId: 'rotateWebhookEndpointSecret',
  summary: 'Replace the signing secret of an endpoint',
  description: [
    'Messages are signed with the new secret and, until the grace period has passed, with the old one, too. At most four old ones hold at a time. If the endpoint has an Ed25519 key, it is',
    'replaced in the same way: v1a signatures are made with the new key and the old one. What the signature scheme does not use is replaced, but signs nothing.',
  ].join(' '),
  scope: 'write',
  body: z.strictObject({
    gracePeriodSeconds: z.int().min(0).max(longestGraceSeconds).default(defaultGraceSeconds).describe('0 ends all old secrets at once.'),
  }),
  requestExample: { gracePeriodSeconds: 3600 },
  answer: {
    status: 200,
    description: 'The new secret.',
    schema: rotation,
    example: {
      secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=',
      signatureScheme: 'hmac-sha256',
      publicKey: null,
      previousPublicKey: null,
      previousSecretExpiresAt: '2026-01-31T13:00:00.000Z',
      secretVersion: 2,
    },
  },
  errors: ['RESOURCE_NOT_FOUND', 'FIELD_MANAGED', 'CONFLICT'],
  handle: async (call): Promise<z.input<typeof rotation>> => {
    const { gracePeriodSeconds } = call.body;
    const secret = newEndpointSecret();
    const rotatedBy = call.idempotency?.mark.slice(0, keptMarkCharacters);
    for (let attempt = 1; ; attempt++) {
      const endpoint = await findEndpoint(call, call.params['id'] ?? '');
      refuseManaged('endpoint', endpoint);
      // By an equal request that was aborted.
      if (call.idempotency?.isTakenOver === true && endpoint.secret.rotatedBy === rotatedBy) return rotated(call, endpoint);
      const nowMs = call.services.clock.now();
      const validUntilMs = gracePeriodSeconds === 0 ? null : nowMs + gracePeriodSeconds * 1000;
      const previous = validUntilMs === null ? [] : previousOf(endpoint.secret, validUntilMs, nowMs);
      refuseTooMany(previous);
      const signingKey = endpoint.signingKey && rotatedKey(call, endpoint.id, endpoint.signingKey, { validUntilMs, nowMs });
      const version = endpoint.secret.version + 1;
      try {
        const change = {
          secret: { ...sealedSecret(call, endpoint.id, secret), version, previous, ...(rotatedBy === undefined ? {} : { rotatedBy }) },
          ...(signingKey !== null && { signingKey }),
        };
        await call.services.webhooks.updateEndpoint(endpoint.org, endpoint.id, change, endpoint.revision);
        const previousSecretExpiresAt = isoTimeOrNull(validUntilMs);
        return { secret, ...keysOf({ ...endpoint, signingKey }), previousSecretExpiresAt, secretVersion: version };
      } catch (error) {
        if (!isPosthornError(error, 'CONFLICT') || attempt === rotationAttempts) throw error;
      }
    }
  },
});

/** The response of the request that set the endpoint's current secret, sent or not. */
function rotated(call: Call, endpoint: WebhookEndpoint): z.input<typeof rotation> {
  const { version, previous } = endpoint.secret;
  const previousSecretExpiresAt = isoTimeOrNull(previous[0]?.validUntilMs ?? null);
  return { secret: openedSecret(call, endpoint), ...keysOf(endpoint), previousSecretExpiresAt, secretVersion: version };
}

function keysOf({ signatureScheme, signingKey }: Pick<WebhookEndpoint, 'signatureScheme' | 'signingKey'>) {
  const previousPublicKey = signingKey?.previous[0]?.publicKey ?? null;
  return { signatureScheme, publicKey: signingKey?.publicKey ?? null, previousPublicKey };
}

/** Valid secrets, the last one first. */
function previousOf({ sealed, previous }: WebhookSecret, validUntilMs: number, nowMs: number): WebhookSecret['previous'] {
  return [{ sealed, validUntilMs }, ...previous.filter((old) => old.validUntilMs > nowMs)];
}

/** A new key; the one before, and those that still hold, sign until their ends. `validUntilMs` null: all old ones have ended. */
function rotatedKey(
  call: Call,
  endpointId: string,
  { sealed, publicKey, previous }: WebhookSigningKey,
  { validUntilMs, nowMs }: { validUntilMs: number | null; nowMs: number },
): WebhookSigningKey {
  const old = validUntilMs === null ? [] : [{ sealed, publicKey, validUntilMs }, ...previous.filter((each) => each.validUntilMs > nowMs)];
  return { ...newSealedKey(call, endpointId), previous: old };
}

/** Each holds until the time that was announced. */
function refuseTooMany([, ...earlier]: WebhookSecret['previous']): void {
  if (earlier.length < maxPrevious) return;
  const firstEnd = isoTime(Math.min(...earlier.map(({ validUntilMs }) => validUntilMs)));
  throw new PosthornError(
    'CONFLICT',
    `${maxPrevious} earlier secrets still hold, the first of them until ${firstEnd}: rotate then, or with gracePeriodSeconds 0, which ends all of them.`,
  );
}
