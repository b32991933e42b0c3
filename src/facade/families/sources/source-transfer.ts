import { z } from 'zod';
import { mapInTurns } from '../../../core/in-turns.ts';
import { looksMasked } from '../../../core/masking.ts';
import type { PosthornObject, SpecOf } from '../../../resources/kinds.ts';
import { type Call, type Operation, operation } from '../../http/operation.ts';
import { documentHead, exported, exportIds, headOf, missingIdsField } from '../../records/portable.ts';
import { nameOf, recordIdentity, shownDescription } from '../../records/record-fields.ts';
import type { ResourceFamilyDefinition } from '../../records/resource-family-definition.ts';
import { importOperation } from '../shared/record-import.ts';
import { intakeToRecord } from './source-intake.ts';
import { awaitsSecret, rejectsInvalid, sourceSettings } from './source-parts.ts';

type Source = PosthornObject<'Source'>;

/** A source in a portable document. Its signing secret and verify token are write-only and stay where they are. */
const portableSource = z
  .object({
    name: recordIdentity.name,
    slug: recordIdentity.slug,
    description: shownDescription,
    ...sourceSettings.shape,
    hasVerifyToken: z.boolean().describe('Whether it has a verify token, which must be sent again after an import.'),
    hasSigningSecret: z.boolean().describe('Whether it has a signing secret, which must be sent again after an import.'),
    isActive: z.boolean().describe('Whether it is enabled.'),
  })
  .meta({ id: 'PortableSource' });

function toPortable(object: Source): z.input<typeof portableSource> {
  const { description = null, provider, verification = null, allowedMethods, handshake, signingSecretRef, enabled } = object.spec;
  return {
    name: nameOf(object),
    slug: object.metadata.name,
    description,
    provider,
    verification,
    allowedMethods,
    rejectInvalidSignatures: rejectsInvalid(object.spec satisfies SpecOf<'Source'>),
    ...intakeToRecord(object.spec),
    handshake: handshake?.type ?? null,
    hasVerifyToken: handshake?.verifyTokenSecretRef !== undefined,
    hasSigningSecret: signingSecretRef !== undefined || awaitsSecret(object.spec),
    isActive: enabled,
  };
}

export const sourceExportOperation: Operation = operation({
  method: 'GET',
  path: '/sources/export',
  operationId: 'exportSources',
  summary: 'Export sources',
  scope: 'read',
  query: z.object({ ids: exportIds.optional() }),
  answer: {
    status: 200,
    description: 'A portable document, by slug, without signing secrets and verify tokens.',
    schema: z.object({ ...documentHead, ...missingIdsField, sources: z.array(portableSource).describe('The sources.') }),
  },
  handle: async (call) => {
    const { objects, missing } = await exported(call, 'Source', call.query.ids);
    return { ...headOf(call), ...missing, sources: await mapInTurns(call.turn, objects, toPortable) };
  },
});

/** `definition` is that of sources in the API. */
export function sourceImportOperation(definition: ResourceFamilyDefinition<'Source', z.ZodObject, z.ZodObject>): Operation {
  return importOperation({
    definition,
    collection: 'sources',
    operationId: 'importSources',
    description:
      'Conflicts are decided by slug. A record whose signing secret or verify token is missing is imported disabled; with overwrite it keeps the stored one. Without its signing secret it cannot be enabled: `awaitsSigningSecret`.',
    example: { name: 'GitHub', slug: 'github', provider: 'github', isActive: true },
    portable: { hasVerifyToken: z.boolean().optional(), hasSigningSecret: z.boolean().optional() },
    bodyOf,
  });
}

async function bodyOf(record: Record<string, unknown>, current: Source | undefined, _call: Call) {
  const { hasSigningSecret, hasVerifyToken, dedupEnabled, signingSecret, verifyToken, ...body } = record;
  // In a document the switch holds whatever the strategy beside it is.
  if (dedupEnabled === false) body['dedupStrategy'] = 'none';
  else body['dedupEnabled'] = dedupEnabled;
  const isSent = (secret: unknown): boolean => typeof secret === 'string' && !looksMasked(secret);
  if (isSent(signingSecret)) body['signingSecret'] = signingSecret;
  if (isSent(verifyToken)) body['verifyToken'] = verifyToken;
  if (hasSigningSecret === false) body['awaitsSigningSecret'] = false;
  const { signingSecretRef, handshake } = current?.spec ?? {};
  // A source that refuses wrong signatures has a secret, even if the record omits it.
  const hasSecret = hasSigningSecret === true || body['rejectInvalidSignatures'] === true;
  const lacksSecret = !isSent(signingSecret) && hasSecret && signingSecretRef === undefined;
  const lacksToken = !isSent(verifyToken) && hasVerifyToken === true && handshake?.verifyTokenSecretRef === undefined;
  const lacking = [...(lacksSecret ? ['signingSecret'] : []), ...(lacksToken ? ['verifyToken'] : [])];
  if (lacking.length === 0) return { body, missing: [] };
  if (lacksSecret && body['rejectInvalidSignatures'] === true) {
    // It is true once there is a secret.
    delete body['rejectInvalidSignatures'];
  }
  if (lacksSecret && body['handshake'] === 'crc_token') {
    // Its answer is signed with the secret.
    delete body['handshake'];
    lacking.push('handshake crc_token');
  }
  const slug = current?.metadata.name ?? String(record['slug']);
  return {
    body: { ...body, ...(lacksSecret && { awaitsSigningSecret: true }), enabled: false, isActive: false },
    missing: [`Source "${slug}" is disabled: send its ${lacking.join(' and its ')}, then enable it.`],
  };
}
