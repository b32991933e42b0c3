import { z } from 'zod';
import { mapInTurns } from '../../../core/in-turns.ts';
import { maskedUnread } from '../../../core/masking.ts';
import { defaultPayloadForm } from '../../../core/payload-link.ts';
import { defaultSignatureScheme } from '../../../core/signature-scheme.ts';
import { apiVersion } from '../../../resources/definition.ts';
import { kinds, type PosthornObject } from '../../../resources/kinds.ts';
import { authorize } from '../../http/authorization.ts';
import { credentialFields } from '../../http/caller.ts';
import { type Call, type Operation, operation } from '../../http/operation.ts';
import { queryBoolean } from '../../http/query.ts';
import { manifestsYaml } from '../../records/manifest-yaml.ts';
import { documentHead, exported, exportIds, headOf, missingIdsComment, missingIdsField } from '../../records/portable.ts';
import { readSecret, type SecretKeyRef } from '../../records/read-secret.ts';
import { nameOf, recordIdentity, shownDescription } from '../../records/record-fields.ts';
import { shownField, textOf } from '../../records/spec-field.ts';
import { redacted } from '../shared/redaction.ts';
import { headerObject, redactedHeaders, revealedHeaders } from '../shared/static-headers.ts';
import { authConfig, authToRecord, authType } from './destination-auth.ts';
import { destinationManifests, secretComment } from './destination-manifests.ts';
import { expiryRecord, retryPolicyRecord, retryPolicyToRecord, throttleRecord, throttleToRecord } from './destination-pace.ts';
import { templatesRecord, templatesToRecord } from './destination-templates.ts';
import { tlsRecord, tlsToRecord } from './destination-tls.ts';
import { fieldMapping, shownCredential, warehouseConfig, warehouseToRecord } from './destination-warehouse.ts';

type Http = NonNullable<PosthornObject<'Destination'>['spec']['http']>;

const spec = kinds.Destination.spec.shape;
const http = spec.http.unwrap().shape;

/** Request fields in the records of warehouses, which make no requests. */
export const unusedFields = {
  url: '',
  method: http.method.parse(undefined),
  headers: {},
  authType: 'none',
  timeoutMs: http.timeoutMs.parse(undefined),
} as const;

/** A destination in a portable document: all that an import needs to make an equal one. */
const portableDestination = z
  .object({
    name: recordIdentity.name,
    slug: recordIdentity.slug,
    description: shownDescription,
    type: shownField(spec.type),
    url: z.string().describe('Empty for warehouse destinations.'),
    method: shownField(http.method),
    headers: z.record(z.string(), z.string()).describe(`Credentials among them are ${redacted} without includeSensitive.`),
    headerTemplates: templatesRecord,
    authType,
    authConfig: z
      .union([z.literal(redacted), authConfig])
      .nullable()
      .describe(`${redacted} without includeSensitive; with it null where authType is none.`),
    timeoutMs: shownField(http.timeoutMs),
    tls: tlsRecord.nullable().optional().describe(`Certificate and key of the client are ${redacted} without includeSensitive.`),
    useStaticIp: shownField(http.useStaticIp).optional(),
    forwardQuery: shownField(http.forwardQuery).optional(),
    forwardHeaders: z.array(z.string()).nullable().optional().describe(textOf(http.forwardHeaders)),
    payloadForm: shownField(http.payloadForm).optional(),
    ordered: shownField(spec.ordered).optional(),
    throttle: throttleRecord,
    retryPolicy: retryPolicyRecord,
    expiresAfterSeconds: expiryRecord.optional(),
    config: warehouseConfig.optional().describe('Of warehouse destinations; credentials masked without includeSensitive.'),
    fieldMapping: fieldMapping.optional(),
    hasSigningSecret: z.boolean().optional().describe('Whether deliveries are signed.'),
    signingSecret: z.string().optional().describe('Only with includeSensitive.'),
    signatureScheme: shownField(http.signatureScheme).optional(),
    isActive: z.boolean().describe('Whether it is enabled.'),
  })
  .meta({ id: 'PortableDestination' });

const query = z.object({
  ids: exportIds.optional(),
  includeSensitive: queryBoolean.default(false).describe('true: with credentials; needs the role admin.'),
});

export const destinationExportOperation: Operation = operation({
  method: 'GET',
  path: '/destinations/export',
  operationId: 'exportDestinations',
  summary: 'Export destinations',
  scope: 'read',
  query,
  answer: {
    status: 200,
    description: 'A portable document, by slug.',
    schema: z.object({ ...documentHead, ...missingIdsField, destinations: z.array(portableDestination).describe('The records.') }),
  },
  offersYaml: {
    description: [
      'Destination manifests, to be kept in Git or applied with kubectl; their ids stay by annotation. With includeSensitive the Secrets that they refer to',
      'stand there, too; without, a comment says which Secret is to be made.',
    ].join(' '),
    makeExample: () =>
      manifestsYaml([
        {
          comment: secretComment('orders-credentials', ['token']),
          object: {
            apiVersion,
            kind: 'Destination',
            metadata: { name: 'orders', annotations: { 'posthorn.dev/id': 'dst_mzxw6ytboi4dsnrrgq3tkojqge' } },
            spec: {
              type: 'http',
              http: {
                url: 'https://shop.example.com/webhooks',
                auth: { type: 'bearer', tokenSecretRef: { name: 'orders-credentials', key: 'token' } },
              },
            },
          },
        },
      ]),
  },
  handle: async (call) => {
    const { ids, includeSensitive } = call.query;
    if (includeSensitive) authorize(call.caller, { scope: 'read', adminOnly: true });
    const { objects, missing } = await exported(call, 'Destination', ids);
    if (includeSensitive) {
      const { organization } = call.caller;
      call.services.logger.info(
        { organization: organization.slug, ...credentialFields(call.caller), count: objects.length },
        'destinations were exported with credentials',
      );
    }
    if (call.wantsYaml) return missingIdsComment(missing) + (await destinationManifests(objects, call, includeSensitive));
    const destinations = await mapInTurns(call.turn, objects, (object) => portable(object, call, includeSensitive));
    return { ...headOf(call), ...missing, destinations };
  },
});

async function portable(
  object: PosthornObject<'Destination'>,
  call: Call,
  includeSensitive: boolean,
): Promise<z.input<typeof portableDestination>> {
  const { description = null, type, enabled, throttle, retryPolicy, expiresAfterSeconds = null, http: settings } = object.spec;
  return {
    name: nameOf(object),
    slug: object.metadata.name,
    description,
    type,
    ...(settings === undefined
      ? await portableWarehouse(object, call, includeSensitive)
      : await portableHttp(object, settings, call, includeSensitive)),
    throttle: throttleToRecord(throttle),
    retryPolicy: retryPolicyToRecord(retryPolicy),
    expiresAfterSeconds,
    isActive: enabled,
  };
}

async function portableWarehouse(object: PosthornObject<'Destination'>, call: Call, includeSensitive: boolean) {
  const stored = await warehouseToRecord(object.spec, async (ref) => {
    const value = await readSecret(call, object, ref);
    return includeSensitive && value !== null ? value : shownCredential(value);
  });
  return { ...unusedFields, authConfig: includeSensitive ? null : redacted, ...stored };
}

async function portableHttp(object: PosthornObject<'Destination'>, settings: Http, call: Call, includeSensitive: boolean) {
  const {
    url,
    method,
    headers,
    headerTemplates,
    auth,
    timeoutMs,
    tls,
    useStaticIp,
    forwardQuery = false,
    forwardHeaders = null,
    payloadForm = defaultPayloadForm,
    signingSecretRef,
    signatureScheme = defaultSignatureScheme,
    awaitsSigningSecret = false,
  } = settings;
  const reveal = async (ref: SecretKeyRef): Promise<string> => (await readSecret(call, object, ref)) ?? maskedUnread;
  return {
    url,
    method,
    headers: headerObject(await (includeSensitive ? revealedHeaders(headers, reveal) : redactedHeaders(headers))),
    headerTemplates: templatesToRecord(headerTemplates),
    authType: auth?.type ?? 'none',
    authConfig: includeSensitive ? (await authToRecord(auth, reveal)).authConfig : redacted,
    timeoutMs,
    tls: await tlsToRecord(tls, (ref) => (includeSensitive ? reveal(ref) : redacted)),
    useStaticIp,
    forwardQuery,
    forwardHeaders,
    payloadForm,
    ordered: object.spec.ordered ?? false,
    hasSigningSecret: signingSecretRef !== undefined || awaitsSigningSecret,
    signatureScheme,
    ...(includeSensitive && signingSecretRef !== undefined && { signingSecret: await reveal(signingSecretRef) }),
  };
}
