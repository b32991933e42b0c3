import { z } from 'zod';

/** Field schemas that several kinds share. Every string and list has a bound, which the CEL cost estimator needs. */

/** RFC 1123 label as object names use it; the slug of a resource. */
export const objectName = z.string().min(1).max(63).regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);

export const reference = z.object({
  name: objectName.describe('Name of the object, in the same namespace.'),
});

export const secretKeyRef = z
  .object({
    name: z.string().min(1).max(253).describe('Name of the Secret, in the same namespace.'),
    key: z.string().min(1).max(253).regex(/^[-._a-zA-Z0-9]+$/).describe('Key in the data of the Secret.'),
  })
  .describe('Where the value stands in a Secret.');

export const displayName = z.string().min(1).max(200).describe('Name shown to people; metadata.name when absent.');
export const description = z.string().max(1000).describe('What this is for.');

export const referenceList = (max: number) =>
  z.array(reference).max(max).meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] });

const condition = z.object({
  type: z.string().max(316),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: z.string().min(1).max(1024),
  message: z.string().max(32768),
  lastTransitionTime: z.string().max(64).meta({ format: 'date-time' }),
  observedGeneration: z.int().min(0).optional(),
});

/** The status fields that every kind has. */
export const commonStatus = {
  observedGeneration: z.int().min(0).optional().describe('The generation that the conditions speak of.'),
  id: z.string().max(64).optional().describe('Id of this resource in the REST API.'),
  conditions: z
    .array(condition)
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
    .optional(),
};
