import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { defaultSignatureScheme } from '../../../core/signature-scheme.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import type { Call, Operation } from '../../http/operation.ts';
import type { ResourceFamilyDefinition } from '../../records/resource-family-definition.ts';
import { importOperation } from '../shared/record-import.ts';
import { isRedacted, redacted } from '../shared/redaction.ts';
import { importedHeaders } from '../shared/static-headers.ts';
import { authConfig, keepsRedacted, plainFields, redactedConfig } from './destination-auth.ts';
import { unusedFields } from './destination-export.ts';
import { importedTls, tlsBody } from './destination-tls.ts';
import { importedConfig, lacksStoreCredential, warehouseConfig } from './destination-warehouse.ts';

type Destination = PosthornObject<'Destination'>;

/** `definition`: of destinations as the API creates them. */
export function destinationImportOperation(definition: ResourceFamilyDefinition<'Destination', z.ZodObject, z.ZodObject>): Operation {
  return importOperation({
    definition,
    collection: 'destinations',
    operationId: 'importDestinations',
    description:
      'Conflicts are decided by slug. Records without their credentials are imported disabled; with overwrite they keep the stored ones. Without its signing secret a destination cannot be enabled: `awaitsSigningSecret`.',
    example: { name: 'Orders', slug: 'orders', url: 'https://shop.example.com/webhooks', isActive: true },
    portable: {
      authConfig: z
        .union([z.literal(redacted), authConfig])
        .nullable()
        .optional(),
      hasSigningSecret: z.boolean().optional(),
    },
    bodyOf: withoutRedacted,
  });
}

/** The body that the record means beside what is there, and which credentials it leaves to be sent. */
async function withoutRedacted(
  record: Record<string, unknown>,
  current: Destination | undefined,
  call: Call,
): Promise<{ body: Record<string, unknown>; missing: string[] }> {
  const { authConfig: config, hasSigningSecret, ...body } = record;
  const stored = current?.spec.http;
  const missing: string[] = [];
  if ((body['type'] ?? current?.spec.type ?? 'http') !== 'http') leaveOutUnused(body);
  const store = importedConfig(warehouseConfig.optional().parse(body['config']), current?.spec);
  body['config'] = store.config;
  if (store.isMissing || (current !== undefined && (await lacksStoreCredential(current, store.config, call))))
    missing.push('credential in config');
  const sent = z
    .union([z.literal(redacted), authConfig])
    .nullish()
    .parse(config);
  const type = body['authType'] ?? stored?.auth?.type ?? 'none';
  const kept = sent === redacted ? undefined : isRedacted(sent) ? plainFields(sent ?? {}) : sent;
  body['authConfig'] = kept;
  if (current !== undefined && stored?.auth?.type === type) {
    if (await keepsRedacted(kept ?? {}, current, call)) missing.push('authConfig');
  } else if (isRedacted(sent) && (type === 'basic' || type === 'bearer' || type === 'api_key' || type === 'custom_header')) {
    body['authConfig'] = redactedConfig(type, kept ?? {});
    missing.push('authConfig');
  }
  const headers = z.record(z.string(), z.string()).nullish().parse(body['headers']);
  const imported = await importedHeaders(call, headers, current, stored?.headers);
  body['headers'] = imported.headers;
  if (imported.isMissing) missing.push('headers');
  const { tls, isMissing } = importedTls(tlsBody.nullish().parse(body['tls']), stored?.tls);
  body['tls'] = tls;
  if (isMissing) missing.push('tls');
  const signing = body['signingSecret'];
  const isSigned = typeof signing === 'string' && !signing.startsWith('•');
  if (!isSigned) {
    delete body['signingSecret'];
    if (hasSigningSecret === false) body['signingSecret'] = null;
    else if ((hasSigningSecret === true || typeof signing === 'string') && stored?.signingSecretRef === undefined) {
      missing.push('signingSecret');
      body['awaitsSigningSecret'] = true;
      // Without a secret no other scheme than the default can be stored.
      if ((body['signatureScheme'] ?? defaultSignatureScheme) !== defaultSignatureScheme) missing.push('signatureScheme');
      delete body['signatureScheme'];
    }
  }
  if (missing.length === 0) return { body, missing };
  const slug = current?.metadata.name ?? String(record['slug']);
  return {
    body: { ...body, enabled: false, isActive: false },
    missing: [`Destination "${slug}" is disabled: send its ${missing.join(' and ')}, then enable it.`],
  };
}

/** The fields of requests as an export has them of warehouses, which have none. */
function leaveOutUnused(body: Record<string, unknown>): void {
  for (const [field, value] of Object.entries(unusedFields)) if (canonicalJson(body[field]) === canonicalJson(value)) delete body[field];
}
