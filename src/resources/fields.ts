import { z } from 'zod';
import { maxExpirySeconds } from '../core/expiry.ts';
import type { Rule } from './definition.ts';
import { dateTime, line, nanosecondsOf, paragraph, text } from './text.ts';

/** Field schemas that several kinds share. Every string and list has a bound, which the CEL cost estimator needs. */

/** After how many seconds messages are given up, counted from when they are accepted. `whose`: messages of what. */
export const expiresAfterSeconds = (whose: string) =>
  z
    .int()
    .min(1)
    .max(maxExpirySeconds)
    .optional()
    .describe(
      `Seconds after which a message ${whose} is given up that has not been delivered: it becomes a dead letter. Of several values that apply to a message the smallest counts. Default: never.`,
    );

/** RFC 1123 label as object names use it; the slug of a resource. */
export const objectName = text(1, 63).regex(
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  'must be lower-case letters, digits and -, and begin and end with a letter or digit',
);

const references = z.registry<{ kind: string }>();

/** A schema of a field whose `name` is that of an object of the kind, in the same namespace. */
export function refersTo<S extends z.ZodObject>(kind: string, schema: S): S {
  references.add(schema, { kind });
  return schema;
}

/** The kind that values of the schema name an object of; undefined: of none. */
export function targetOf(schema: z.core.$ZodType): string | undefined {
  return references.get(schema)?.kind;
}

/** A reference to an object of the kind. `references.ts` finds it in the schema. The referrer is reconciled when that object changes. */
export const reference = (kind: string) =>
  refersTo(kind, z.strictObject({ name: objectName.describe('Name of the object, in the same namespace.') }));

export const secretKeyRef = z
  .strictObject({
    name: text(1, 253)
      .regex(
        /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
        'must be lower-case letters, digits, - and ., and begin and end with a letter or digit',
      )
      .describe('Name of the Secret, in the same namespace.'),
    key: text(1, 253)
      .regex(/^[-._a-zA-Z0-9]+$/, 'must be letters, digits, -, _ and .')
      .describe('Key in the data of the Secret.'),
  })
  .meta({ 'x-kubernetes-map-type': 'atomic' });

/** Field of a webhook application or endpoint. */
export const disableAfterHours = z
  .int()
  .min(0)
  .max(8760)
  .optional()
  .describe(
    'Hours of uninterrupted failure after which an endpoint is disabled. 0: never. Default: that of the application, then POSTHORN_WEBHOOK_DISABLE_AFTER_HOURS.',
  );
export const displayName = line(1, 200).describe('Name shown to people; metadata.name when absent.');
export const description = paragraph(0, 1000).describe('What this is for.');

/** Up to `max` objects of the kind in the same namespace, each at most once. */
export const referenceList = (kind: string, max: number) =>
  z
    .array(reference(kind))
    .max(max)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] });

const condition = z.strictObject({
  type: text(1, 316).describe('Type of the condition, such as Ready.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  reason: text(1, 1024).describe('One word for the last transition, for programs.'),
  message: text(0, 32768).describe('Human-readable description of what happened and what to do.'),
  lastTransitionTime: dateTime.describe('When the status last changed.'),
  observedGeneration: z.int().min(0).optional().describe('The generation that the condition speaks of.'),
});

/** The status fields that every kind has. */
export const commonStatus = {
  observedGeneration: z.int().min(0).optional().describe('The generation that the conditions speak of.'),
  id: text(0, 64).optional().describe('Id of this resource in the REST API.'),
  conditions: z
    .array(condition)
    .max(16)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })
    .optional()
    .describe('Accepted, ResolvedRefs, Programmed and their conjunction Ready, and further conditions of the controller.'),
};

/** The status of a kind about its circuit breaker. */
export const circuitStatus = z.strictObject({
  state: z
    .enum(['closed', 'open', 'half_open'])
    .describe('closed: deliveries flow; open: they wait or fail over; half_open: probes are under way.'),
  since: dateTime.optional().describe('When this state began.'),
});

/** Rule of a `dateTime`. The API server lets a list pass where a text has a format; the comparison stops it. */
export const afterEpoch = (at: string): Rule => ({
  at,
  cel: "self > timestamp('1970-01-01T00:00:00Z')",
  message: 'must be a time after 1970',
  check: (self: string) => nanosecondsOf(self) > 0n,
});
