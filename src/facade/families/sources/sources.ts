import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { lastFour } from '../../../core/masking.ts';
import { ownProvider, type Provider } from '../../../core/providers/providers.ts';
import { description } from '../../../resources/fields.ts';
import { kinds, type PosthornObject, type SpecInputOf, type SpecOf } from '../../../resources/kinds.ts';
import type { Call, Family } from '../../http/operation.ts';
import { pageQuery } from '../../http/pagination.ts';
import { queryBoolean, querySearch } from '../../http/query.ts';
import { refuseUsed, routesWith } from '../../records/in-use.ts';
import { idOf } from '../../records/lookup.ts';
import { readToShow } from '../../records/read-secret.ts';
import {
  clearableToSpec,
  identityOf,
  isoTimeOrNull,
  nameToSpec,
  recordIdentity,
  recordSwitch,
  recordTimes,
  sentName,
  sentSlug,
  sentSwitch,
  shownDescription,
  switchOf,
  switchSynonym,
  timesOf,
  timestamp,
} from '../../records/record-fields.ts';
import { resourceFamily } from '../../records/resource-family.ts';
import { resourceDefinition } from '../../records/resource-family-definition.ts';
import { matchesText } from '../../records/search.ts';
import type { SentSecrets } from '../../records/secret-draft.ts';
import { shownField, specField } from '../../records/spec-field.ts';
import { awaitedSecretToSpec } from '../shared/awaited-secret.ts';
import { bulkDelete } from '../shared/bulk-delete.ts';
import { intakeBody, intakeSynonyms, intakeToRecord, intakeToSpec } from './source-intake.ts';
import { awaitsSecret, handshakeType, rejectsInvalid, shownVerification, sourceSettings } from './source-parts.ts';
import { refuseStoredSecret, refuseUnusableSecret, rotateSourceSecret } from './source-rotation.ts';
import { sourceSignatureFailures } from './source-signature-failures.ts';
import { sourceExportOperation, sourceImportOperation } from './source-transfer.ts';

const { provider, allowedMethods, awaitsSigningSecret, enabled } = kinds.Source.spec.shape;

const item = z
  .object({
    ...recordIdentity,
    description: shownDescription,
    ...recordSwitch(enabled),
    ingestUrl: z
      .string()
      .describe('Where the provider posts to. A path without a host where the installation has no configured public URL.'),
    eventsCount: z.int().min(0).describe('Events that it has accepted since it was created.'),
    eventCount: z.int().min(0).describe('The same as eventsCount.'),
    routeCount: z.int().min(0).describe('Routes of the source.'),
    lastEventAt: timestamp.nullable().describe('When the last event came; null before the first.'),
    ...sourceSettings.shape,
    hasVerifyToken: z.boolean().describe('Whether there is a verify token.'),
    hasSigningSecret: z.boolean().describe('Whether there is a signing secret.'),
    awaitsSigningSecret: shownField(awaitsSigningSecret),
    ...recordTimes,
  })
  .meta({ id: 'SourceItem' });
const record = item
  .extend({ signingSecretLast4: z.string().nullable().describe('Its last four characters, only of secrets of at least 12.') })
  .meta({ id: 'Source' });

const body = z.strictObject({
  name: sentName.optional(),
  slug: sentSlug.optional(),
  description: description.nullable().optional(),
  provider: specField(provider),
  verification: shownVerification.nullable().optional().describe('How the sender signs: an HMAC of the body. Needed with provider custom.'),
  signingSecret: z
    .string()
    .min(1)
    .max(4096)
    .nullable()
    .optional()
    .describe(
      'What the provider signs with; write-only. Of standard-webhooks and svix whsec_ secrets, whpk_ public keys (Ed25519), or both, separated by blanks. null removes it. Another one ends all old ones at once; rotate-secret gives the last a grace.',
    ),
  awaitsSigningSecret: specField(awaitsSigningSecret),
  rejectInvalidSignatures: z.boolean().optional().describe('Default true once there is a signing secret.'),
  ...intakeBody,
  handshake: handshakeType
    .nullable()
    .optional()
    .describe(
      'A verification request of the sender before it sends events. crc_token is answered with the signing secret. It is answered regardless of allowedMethods, and is no event.',
    ),
  verifyToken: z
    .string()
    .min(1)
    .max(4096)
    .nullable()
    .optional()
    .describe('With handshake hub_challenge: what hub.verify_token must be; write-only. null removes it: every subscription is confirmed.'),
  allowedMethods: specField(allowedMethods),
  ...sentSwitch(enabled),
});

const query = z.object({
  ...pageQuery,
  enabled: queryBoolean.optional().describe('Only those that are enabled, or not.'),
  search: querySearch.optional().describe('Part of the name or slug.'),
});

async function toItem(object: PosthornObject<'Source'>, call: Call): Promise<z.input<typeof item>> {
  const { caller, services, publicIngestUrl = '' } = call;
  const counters = await services.messages.eventCounters(caller.organization.id, idOf(object));
  return {
    ...identityOf(object, call),
    description: object.spec.description ?? null,
    provider: object.spec.provider,
    ...switchOf(object),
    ingestUrl: `${publicIngestUrl}/ingest/${caller.organization.slug}/${object.metadata.name}`,
    eventsCount: counters.events,
    eventCount: counters.events,
    routeCount: routesWith(object, call).length,
    lastEventAt: isoTimeOrNull(counters.lastEventAtMs),
    verification: object.spec.verification ?? null,
    rejectInvalidSignatures: rejectsInvalid(object.spec),
    ...intakeToRecord(object.spec),
    allowedMethods: object.spec.allowedMethods,
    handshake: object.spec.handshake?.type ?? null,
    hasVerifyToken: object.spec.handshake?.verifyTokenSecretRef !== undefined,
    hasSigningSecret: object.spec.signingSecretRef !== undefined,
    awaitsSigningSecret: awaitsSecret(object.spec),
    ...timesOf(object),
  };
}

/** Given always: a default that nobody owns would stay in the set beside what replaces it. */
const defaultMethods = allowedMethods.parse(undefined);

function rejectionToSpec(sent: boolean | undefined, spec: SpecOf<'Source'> | undefined, hasSecret: boolean): boolean | undefined {
  const hadSecret = spec?.signingSecretRef !== undefined;
  const kept = hadSecret && !hasSecret ? undefined : spec?.rejectInvalidSignatures;
  if (sent === undefined) return kept;
  // Shown is what holds; sent back as it was shown, it is no wish, unless a first secret comes beside it and would change it.
  const isAsShown = spec !== undefined && sent === rejectsInvalid(spec) && (hadSecret || !hasSecret);
  return isAsShown ? kept : sent;
}

/** VALIDATION_FAILED for a verify token that is blank or without the handshake that compares it, and for a handshake that signs with nothing. */
async function handshakeToSpec(
  { handshake: type, verifyToken }: Pick<z.output<typeof body>, 'handshake' | 'verifyToken'>,
  spec: SpecOf<'Source'> | undefined,
  { secrets, hasSigningSecret, provider: ofProvider }: { secrets: SentSecrets; hasSigningSecret: boolean; provider: Provider },
): Promise<SpecInputOf<'Source'>['handshake']> {
  const wanted = type === undefined ? spec?.handshake?.type : (type ?? undefined);
  const before = wanted === 'hub_challenge' ? spec?.handshake?.verifyTokenSecretRef : undefined;
  if (typeof verifyToken === 'string' && wanted !== 'hub_challenge')
    throw new PosthornError('VALIDATION_FAILED', 'verifyToken is valid only with handshake hub_challenge.');
  if (typeof verifyToken === 'string' && /^\s*$/.test(verifyToken))
    throw new PosthornError('VALIDATION_FAILED', 'verifyToken must not be blank.');
  if (wanted === 'crc_token' && !hasSigningSecret)
    throw new PosthornError('VALIDATION_FAILED', 'handshake crc_token needs a signingSecret to sign its response.');
  if (wanted === undefined) return undefined;
  if (ofProvider === ownProvider) throw new PosthornError('VALIDATION_FAILED', `handshake must be left out with provider ${ownProvider}.`);
  const ref =
    typeof verifyToken === 'string' ? await secrets.put('verifyToken', verifyToken, before) : verifyToken === null ? undefined : before;
  return { type: wanted, verifyTokenSecretRef: ref };
}

const definition = resourceDefinition<'Source', typeof body, typeof query>({
  kind: 'Source',
  name: 'Sources',
  path: '/sources',
  description: 'Where events come in.',
  record,
  item,
  body,
  required: ['name'],
  synonyms: { isActive: switchSynonym(), ...intakeSynonyms },
  immutable: { slug: (object) => [object.metadata.name] },
  query,
  examples: {
    create: { name: 'GitHub', provider: 'github', signingSecret: 'a-long-random-secret' },
    change: { enabled: false },
    shown: { slug: 'github', description: null, ingestUrl: 'https://hooks.example.com/ingest/acme/github', signingSecretLast4: 'cret' },
  },
  errors: { delete: ['IN_USE'] },
  filter:
    ({ enabled, search }) =>
    (object) =>
      (enabled === undefined || object.spec.enabled === enabled) && matchesText(search, object.spec.name, object.metadata.name),
  toItem,
  toRecord: async (object, call): Promise<z.input<typeof record>> => {
    const { signingSecretRef } = object.spec;
    const secret = signingSecretRef === undefined ? null : await readToShow(call, object, signingSecretRef);
    return {
      ...(await toItem(object, call)),
      signingSecretLast4: secret === null ? null : lastFour(secret),
    };
  },
  toSpec: async ({ call, body: sent, current, secrets }) => {
    const spec = current?.spec;
    const ofProvider = sent.provider ?? spec?.provider ?? 'generic';
    if (typeof sent.signingSecret === 'string') refuseUnusableSecret(ofProvider, sent.signingSecret);
    else if (current !== undefined && sent.signingSecret === undefined && ofProvider !== current.spec.provider)
      await refuseStoredSecret(call, ofProvider, current);
    const signingSecretRef =
      typeof sent.signingSecret === 'string'
        ? await secrets.put('signingSecret', sent.signingSecret, spec?.signingSecretRef)
        : sent.signingSecret === null
          ? undefined
          : spec?.signingSecretRef;
    const isRotated = signingSecretRef === undefined || signingSecretRef !== spec?.signingSecretRef || ofProvider !== spec.provider;
    return {
      name: nameToSpec(sent.name, current),
      description: clearableToSpec(sent.description, spec?.description),
      provider: ofProvider,
      verification: clearableToSpec(sent.verification, ofProvider === 'custom' ? spec?.verification : undefined),
      signingSecretRef,
      rotation: isRotated ? undefined : spec.rotation,
      awaitsSigningSecret: awaitedSecretToSpec({
        stored: spec?.awaitsSigningSecret,
        sent: sent.awaitsSigningSecret,
        sentSecret: sent.signingSecret,
        hasSecret: signingSecretRef !== undefined,
        isEnabled: sent.enabled ?? spec?.enabled ?? true,
      }),
      rejectInvalidSignatures: rejectionToSpec(sent.rejectInvalidSignatures, spec, signingSecretRef !== undefined),
      ...intakeToSpec(sent, spec, ofProvider),
      handshake: await handshakeToSpec(sent, spec, { secrets, hasSigningSecret: signingSecretRef !== undefined, provider: ofProvider }),
      allowedMethods: sent.allowedMethods ?? spec?.allowedMethods ?? defaultMethods,
      enabled: sent.enabled ?? spec?.enabled,
    } satisfies SpecInputOf<'Source'>;
  },
  beforeDelete: {
    looksAt: ['Route'],
    run: refuseWithRoutes,
  },
});

const operations = [
  bulkDelete({
    kind: 'Source',
    path: '/sources',
    noun: 'sources',
    description: 'Unknown ids are skipped. When Git owns one of them, or one has routes, nothing is deleted.',
    beforeDelete: refuseWithRoutes,
  }),
  rotateSourceSecret,
  sourceSignatureFailures,
  sourceExportOperation,
  sourceImportOperation(definition),
];

export const sources: Family = { ...resourceFamily(definition, operations), common: [sourceSettings] };

async function refuseWithRoutes(object: PosthornObject<'Source'>, call: Call): Promise<void> {
  refuseUsed('source', routesWith(object, call));
}
