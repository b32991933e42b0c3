import { z } from 'zod';
import { dateTime } from './text.ts';

/**
 * ObjectMeta as the API server takes it in a body: unknown fields are refused, and names, labels, annotations,
 * finalizers and owner references have its rules (apimachinery, `ValidateObjectMeta`).
 */

const dnsLabel = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const qualifiedName = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const labelValue = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const maxAnnotationBytes = 256 * 1024;

function isQualifiedName(key: string): boolean {
  const [name, prefix, ...more] = key.split('/').reverse();
  if (name === undefined || more.length > 0) return false;
  return qualifiedName.test(name) && (prefix === undefined || (prefix.length <= 253 && dnsSubdomain.test(prefix)));
}

const subdomainText = 'must be lower-case letters, digits, - and ., and begin and end with a letter or digit';
const subdomainName = z.string().min(1).max(253).regex(dnsSubdomain, subdomainText);
const labelName = z
  .string()
  .min(1)
  .max(63)
  .regex(dnsLabel, 'must be lower-case letters, digits and -, and begin and end with a letter or digit');

const labels = z.record(z.string(), z.string()).superRefine((value, context) => {
  for (const [key, label] of Object.entries(value)) {
    if (!isQualifiedName(key)) context.addIssue(`has the key ${key}, which is not [prefix/]name of letters, digits, -, _ and .`);
    if (!labelValue.test(label)) context.addIssue(`has the value ${label}, which is not at most 63 letters, digits, -, _ and .`);
  }
});

const annotations = z.record(z.string(), z.string()).superRefine((value, context) => {
  let bytes = 0;
  for (const [key, text] of Object.entries(value)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(text);
    if (!isQualifiedName(key.toLowerCase()))
      context.addIssue(`has the key ${key}, which is not [prefix/]name of letters, digits, -, _ and .`);
  }
  if (bytes > maxAnnotationBytes) context.addIssue(`must be at most ${maxAnnotationBytes} bytes together`);
});

const ownerReference = z.strictObject({
  apiVersion: z.string().min(1, 'is required'),
  kind: z.string().min(1, 'is required'),
  name: z.string().min(1, 'is required'),
  uid: z.string().min(1, 'is required'),
  controller: z.boolean().optional(),
  blockOwnerDeletion: z.boolean().optional(),
});

const finalizer = z.string().refine(isQualifiedName, { error: 'must be [prefix/]name of letters, digits, -, _ and .' });

/** The type of server-owned fields is checked; their values are the store's to set. */
const common = {
  generateName: z
    .string()
    .regex(/^([a-z0-9][-a-z0-9.]*)?$/, subdomainText)
    .optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.int().optional(),
  creationTimestamp: dateTime.optional(),
  deletionTimestamp: dateTime.optional(),
  deletionGracePeriodSeconds: z.int().optional(),
  selfLink: z.string().optional(),
  labels: labels.optional(),
  annotations: annotations.optional(),
  finalizers: z.array(finalizer).meta({ 'x-kubernetes-list-type': 'set' }).optional(),
  ownerReferences: z
    .array(ownerReference.meta({ 'x-kubernetes-map-type': 'atomic' }))
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['uid'] })
    .optional(),
  managedFields: z
    .array(
      z.strictObject({
        manager: z.string(),
        operation: z.enum(['Apply', 'Update']),
        apiVersion: z.string(),
        time: z.string().optional(),
        fieldsType: z.literal('FieldsV1'),
        fieldsV1: z.record(z.string(), z.unknown()),
        subresource: z.string().optional(),
      }),
    )
    .optional(),
};

export const namespacedMetadata = z.strictObject({ name: subdomainName, namespace: labelName, ...common });
export const clusterMetadata = z.strictObject({
  name: subdomainName,
  namespace: z.string().optional(),
  ...common,
});
export const namespaceMetadata = clusterMetadata.extend({ name: labelName });
