import { z } from 'zod';
import { defaultPayloadForm, payloadForms } from '../core/payload-link.ts';
import { defaultSignatureScheme, signatureSchemes } from '../core/signature-scheme.ts';
import { awaitsSigningSecret } from './awaited-secret.ts';
import { description, displayName, expiresAfterSeconds, secretKeyRef } from './fields.ts';
import { forwardedHeaderNames } from './forwarded-header.ts';
import { headerTemplates } from './header-template-list.ts';
import { headerName, staticHeaders } from './http-header.ts';
import { controls, line, text } from './text.ts';
import { bucketName, httpsUrl, httpUrl } from './url.ts';

const usernameComplaint = 'must have no colon and no control characters';

const auth = z.strictObject({
  type: z
    .enum(['none', 'basic', 'bearer', 'api_key', 'custom_header'])
    .default('none')
    .describe('How deliveries authenticate at the endpoint.'),
  username: text(1, 256)
    .regex(new RegExp(`^[^:${controls}]*$`), usernameComplaint)
    .optional()
    .describe('User name, with type basic.'),
  passwordSecretRef: secretKeyRef.optional().describe('Password, with type basic.'),
  tokenSecretRef: secretKeyRef.optional().describe('Token, with type bearer.'),
  headerName: headerName.optional().describe('Name of the header, with type api_key or custom_header.'),
  keySecretRef: secretKeyRef.optional().describe('Value of the header, with type api_key.'),
  headerValueSecretRef: secretKeyRef.optional().describe('Value of the header, with type custom_header.'),
});

const tls = z.strictObject({
  caBundle: text(1, 65_536)
    .regex(/-----BEGIN CERTIFICATE-----/, 'must be certificates in PEM form')
    .optional()
    .describe('Certificates (PEM) of the authorities trusted for this endpoint instead of the well-known ones.'),
  clientCertificateSecretRef: secretKeyRef.optional().describe('Certificate (PEM) that Posthorn shows to the endpoint; with its chain.'),
  clientKeySecretRef: secretKeyRef.optional().describe('Key (PEM) of that certificate.'),
});

const http = z.strictObject({
  url: httpUrl.describe('Absolute http or https URL without user and password.'),
  method: z.enum(['POST', 'PUT', 'PATCH']).default('POST').describe('Method of the requests.'),
  headers: staticHeaders(50).optional().describe('Sent with every delivery.'),
  headerTemplates: headerTemplates(50, 'destination')
    .optional()
    .describe('Headers whose values are made of the message for every attempt. One without a value is left out.'),
  auth: auth.optional().describe('Authentication at the endpoint.'),
  timeoutMs: z.int().min(100).max(60_000).default(30_000).describe('One deadline over connect, headers and body, in milliseconds.'),
  tls: tls.optional().describe('Private certificate authority and mutual TLS.'),
  useStaticIp: z
    .boolean()
    .default(false)
    .describe('Requests go through the egress proxy of the installation, which has a fixed address. Needs a paid plan.'),
  forwardQuery: z
    .boolean()
    .optional()
    .describe('The query of the URL that an event came to is appended to the url of the destination, without credentials. Default: false.'),
  forwardHeaders: forwardedHeaderNames
    .optional()
    .describe(
      'Names of the headers of an event that are sent on, in any case. An empty list sends none of them. Without the list all are sent that are kept with the event. content-type, content-encoding and x-posthorn-hop of the event are sent with any list. A webhook-id of the event is sent in place of that of Posthorn where the destination does not sign. Headers of the destination, also its user-agent, go before those of the event and the user-agent of Posthorn.',
    ),
  payloadForm: z
    .enum(payloadForms)
    .optional()
    .describe(
      `Body: full, the payload, or thin, a JSON object with a link to it, which needs POSTHORN_PUBLIC_URL. Default: ${defaultPayloadForm}.`,
    ),
  signingSecretRef: secretKeyRef
    .optional()
    .describe(
      'Deliveries are signed with it as Standard Webhooks describes: whsec_ + base64, for ed25519 a key whsk_ + base64, for both one of each, separated by a blank.',
    ),
  signatureScheme: z
    .enum(signatureSchemes)
    .optional()
    .describe(
      `Signatures in webhook-signature: hmac-sha256 (v1, by the whsec_ secrets), ed25519 (v1a, by the whsk_ keys) or both. Default: ${defaultSignatureScheme}.`,
    ),
  awaitsSigningSecret,
});

const throttle = z.strictObject({
  mode: z.enum(['off', 'rate', 'concurrency']).default('off').describe('What is limited.'),
  rateLimit: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe(
      "Deliveries per rateUnit, with mode rate. After a pause one second's worth (at least one) may go at once, so the first second may have twice as many; strict forbids that.",
    ),
  rateUnit: z.enum(['second', 'minute', 'hour']).optional().describe('Unit of rateLimit.'),
  strict: z
    .boolean()
    .optional()
    .describe(
      'With mode rate: deliveries go out evenly, one at a time, so no window of a second (or rateUnit) has more than rateLimit. Very high rates may not be reached.',
    ),
  maxConcurrency: z.int().min(1).max(10_000).optional().describe('Deliveries at one time, with mode concurrency.'),
  queueLimit: z
    .int()
    .min(1)
    .max(10_000_000)
    .optional()
    .describe(
      'Deliveries waiting or under way; further ones go to a failover destination of their route that is free, else to the dead letters.',
    ),
});

const retryPolicy = z.strictObject({
  maxRetries: z.int().min(0).max(25).default(10).describe('Attempts after the first one.'),
  initialDelayMs: z.int().min(100).max(3_600_000).default(1000).describe('Wait before the first retry, in milliseconds.'),
  maxDelayMs: z.int().min(100).max(86_400_000).default(3_600_000).describe('Longest wait between two attempts, in milliseconds.'),
  backoffMultiplier: z.number().min(1).max(10).default(4).describe('Each wait is this many times the one before.'),
  delaysMs: z
    .array(z.int().min(100).max(86_400_000))
    .min(1)
    .max(25)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe(
      'Waits before the retries, in milliseconds: one for each retry, and no further one. With it the other fields of the policy are not used.',
    ),
});

const warehouse = z.strictObject({
  prefix: line(0, 512).optional().describe('First part of the object keys.'),
  fileFormat: z.enum(['jsonl', 'json']).default('jsonl').describe('Format of the objects.'),
  partitionBy: z.enum(['date', 'hour', 'source']).default('date').describe('How object keys are partitioned.'),
  identity: z
    .enum(['keys', 'platform'])
    .default('keys')
    .describe(
      'platform: the identity that the platform gives to the delivery pods, instead of static keys; only where the installation allows it (POSTHORN_WAREHOUSE_PLATFORM_IDENTITY).',
    ),
  fieldMapping: z
    .array(
      z.strictObject({
        source: text(1, 512).describe('JSONPath (RFC 9535), for example rooted at $.payload.'),
        target: text(1, 256).describe('Output column.'),
        type: z.enum(['string', 'number', 'boolean', 'timestamp', 'json']).describe('Type of the column.'),
        default: text(0, 1024).optional().describe('Value where the source is absent.'),
      }),
    )
    .max(50)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional()
    .describe(
      'Columns of a record; without it a record is {id, source, receivedAt, headers, payload}, with query where the URL of the event had one.',
    ),
});

const accessKeyId = text(1, 256).optional().describe('Id of the access key.');
const secretAccessKeySecretRef = secretKeyRef.optional().describe('Secret access key.');

const s3 = z.strictObject({
  bucket: bucketName,
  region: text(1, 64)
    .regex(/^[a-z0-9-]+$/, 'must be lower-case letters, digits and hyphens')
    .describe('Region of the bucket, such as eu-central-1.'),
  accessKeyId,
  secretAccessKeySecretRef,
});
const r2 = z.strictObject({
  bucket: bucketName,
  endpoint: httpsUrl.describe('https URL of the S3 interface of the account.'),
  accessKeyId,
  secretAccessKeySecretRef,
});
const gcs = z.strictObject({
  bucket: bucketName,
  projectId: text(1, 128).describe('Project that the bucket belongs to.'),
  serviceAccountKeySecretRef: secretKeyRef.optional().describe('Key of a service account, as JSON.'),
});
const azureBlob = z.strictObject({
  accountName: text(3, 24)
    .regex(/^[a-z0-9]+$/, 'must be lower-case letters and digits')
    .describe('Name of the storage account.'),
  containerName: text(3, 63)
    .regex(/^[a-z0-9][a-z0-9-]*$/, 'must be lower-case letters, digits and hyphens')
    .describe('Name of the container.'),
  accountKeySecretRef: secretKeyRef.optional().describe('Key of the storage account.'),
});

export const destinationSpec = z.strictObject({
  name: displayName.optional(),
  description: description.optional(),
  type: z.enum(['http', 's3', 'r2', 'gcs', 'azure_blob']).default('http').describe('What the destination is. Cannot be changed.'),
  enabled: z.boolean().default(true).describe('While false, deliveries are accepted and wait.'),
  http: http.optional().describe('The endpoint, with type http.'),
  throttle: throttle.optional().describe('Rate at which deliveries are sent.'),
  ordered: z
    .boolean()
    .optional()
    .describe(
      'Deliveries of a route go out in the order in which they were accepted, one at a time; a delivery that has failed is tried again before the next one is sent. With type http, and without failover. Default: false.',
    ),
  retryPolicy: retryPolicy.optional().describe('When failed deliveries are tried again.'),
  expiresAfterSeconds: expiresAfterSeconds('to the destination'),
  warehouse: warehouse.optional().describe('How files are written, with every type but http.'),
  s3: s3.optional().describe('The bucket, with type s3.'),
  r2: r2.optional().describe('The bucket, with type r2.'),
  gcs: gcs.optional().describe('The bucket, with type gcs.'),
  azureBlob: azureBlob.optional().describe('The container, with type azure_blob.'),
});
