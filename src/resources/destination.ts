import { z } from 'zod';
import { defineKind } from './definition.ts';
import { commonStatus, description, displayName, secretKeyRef } from './fields.ts';
import { ageColumn, readyColumns } from './printer-columns.ts';

const bucket = z.string().min(3).max(63);
const headerName = z.string().min(1).max(128).regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/);
const headerValue = z.string().max(4096).regex(/^[^\r\n\0]*$/);

const auth = z.object({
  type: z.enum(['none', 'basic', 'bearer', 'api_key', 'custom_header']).default('none'),
  username: z.string().min(1).max(256).optional(),
  passwordSecretRef: secretKeyRef.optional(),
  tokenSecretRef: secretKeyRef.optional(),
  headerName: headerName.optional(),
  keySecretRef: secretKeyRef.optional(),
  headerValueSecretRef: secretKeyRef.optional(),
});

const http = z.object({
  url: z.string().min(1).max(2048).regex(/^https?:\/\/[^\s/?#@]+([/?#]\S*)?$/).describe('Absolute http or https URL without user and password.'),
  method: z.enum(['POST', 'PUT', 'PATCH']).default('POST'),
  headers: z
    .array(z.object({ name: headerName, value: headerValue }))
    .max(50)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .optional()
    .describe('Sent with every delivery.'),
  auth: auth.optional(),
  timeoutMs: z.int().min(100).max(60_000).default(30_000).describe('One deadline over connect, headers and body, in milliseconds.'),
  signingSecretRef: secretKeyRef.optional().describe('Deliveries are signed with it as Standard Webhooks describes (whsec_ + base64).'),
});

const throttle = z.object({
  mode: z.enum(['off', 'rate', 'concurrency']).default('off'),
  rateLimit: z.int().min(1).max(1_000_000).optional(),
  rateUnit: z.enum(['second', 'minute', 'hour']).optional(),
  maxConcurrency: z.int().min(1).max(10_000).optional(),
  queueLimit: z.int().min(1).max(10_000_000).optional(),
});

const retryPolicy = z.object({
  maxRetries: z.int().min(0).max(25).default(10),
  initialDelayMs: z.int().min(100).max(3_600_000).default(1000),
  maxDelayMs: z.int().min(100).max(86_400_000).default(3_600_000),
  backoffMultiplier: z.number().min(1).max(10).default(4),
});

const warehouse = z.object({
  prefix: z.string().max(512).optional(),
  fileFormat: z.enum(['jsonl', 'json']).default('jsonl'),
  partitionBy: z.enum(['date', 'hour', 'source']).default('date'),
  identity: z.enum(['keys', 'platform']).default('keys').describe('platform: the identity that the platform gives to the pod, instead of static keys.'),
  fieldMapping: z
    .array(
      z.object({
        source: z.string().min(1).max(512).describe('JSONPath (RFC 9535), for example rooted at $.payload.'),
        target: z.string().min(1).max(256).describe('Output column.'),
        type: z.enum(['string', 'number', 'boolean', 'timestamp', 'json']),
        default: z.string().max(1024).optional(),
      }),
    )
    .max(50)
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .optional(),
});

const s3 = z.object({
  bucket,
  region: z.string().min(1).max(64),
  accessKeyId: z.string().min(1).max(256).optional(),
  secretAccessKeySecretRef: secretKeyRef.optional(),
});
const r2 = z.object({
  bucket,
  endpoint: z.string().max(2048).regex(/^https:\/\/[^\s/?#@]+(\/\S*)?$/),
  accessKeyId: z.string().min(1).max(256).optional(),
  secretAccessKeySecretRef: secretKeyRef.optional(),
});
const gcs = z.object({ bucket, projectId: z.string().min(1).max(128), serviceAccountKeySecretRef: secretKeyRef.optional() });
const azureBlob = z.object({
  accountName: z.string().min(3).max(24),
  containerName: z.string().min(3).max(63),
  accountKeySecretRef: secretKeyRef.optional(),
});

const circuitStatus = z.object({
  state: z.enum(['closed', 'open', 'half_open']),
  since: z.string().max(64).meta({ format: 'date-time' }).optional(),
});

export const destination = defineKind({
  kind: 'Destination',
  plural: 'destinations',
  singular: 'destination',
  shortName: 'dest',
  scope: 'Namespaced',
  description: 'Where events are delivered to: an HTTP endpoint, or files in object storage.',
  idPrefix: 'dst_',
  spec: z.object({
    name: displayName.optional(),
    description: description.optional(),
    type: z.enum(['http', 's3', 'r2', 'gcs', 'azure_blob']).default('http'),
    enabled: z.boolean().default(true),
    http: http.optional(),
    throttle: throttle.optional(),
    retryPolicy: retryPolicy.optional(),
    warehouse: warehouse.optional(),
    s3: s3.optional(),
    r2: r2.optional(),
    gcs: gcs.optional(),
    azureBlob: azureBlob.optional(),
  }),
  status: z.object({ ...commonStatus, circuit: circuitStatus.optional() }),
  rules: [
    {
      at: '',
      transition: true,
      cel: 'self.type == oldSelf.type',
      message: 'type cannot be changed',
      fieldPath: '.type',
      check: (self, oldSelf) => self.type === oldSelf.type,
    },
  ],
  printerColumns: [
    ...readyColumns,
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Circuit', type: 'string', jsonPath: '.status.circuit.state' },
    { name: 'URL', type: 'string', jsonPath: '.spec.http.url', priority: 1 },
    ageColumn,
  ],
});
