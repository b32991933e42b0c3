import { z } from 'zod';
import type { PosthornObject } from '../../resources/kinds.ts';
import { filledLine } from '../../resources/text.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';
import { idOf } from './lookup.ts';
import { longestSlug } from './slug.ts';
import { shownField, specField } from './spec-field.ts';
import { type Synonym, sameAs, sentSynonym } from './synonyms.ts';

/** Schemas and values of the fields that the records of all custom resources share. */

export const timestamp = z.iso.datetime();

/** How a body or a query names a record. */
export const idOrSlug = z.string().min(1).max(128);

/** The id of the organization that a record belongs to; all records have it. */
export const organizationId = z.string().describe('Id of the organization.');

export const recordIdentity = {
  id: z.string().describe('Made by Posthorn; stays the same.'),
  organizationId,
  name: z.string().describe('Name shown to people.'),
  slug: z.string().describe('Name in paths and in Kubernetes (metadata.name). Cannot be changed.'),
};

export const recordTimes = {
  createdAt: timestamp.describe('When it was made.'),
  updatedAt: timestamp.describe('When it was last changed.'),
};

/** What every record of a resource has: the document refers to it by this name. */
export const resourceRecord = z
  .object({ ...recordIdentity, ...recordTimes })
  .meta({ id: 'Resource', description: 'What identifies a record, and its times.' });

/** What a record says of itself. */
export const shownDescription = z.string().nullable().describe('What this is for; null when nothing was said.');

/** A related record, as it is expanded on read. */
export const related = z
  .object({ id: z.string().describe('Its id.'), name: z.string().describe('Its name.') })
  .meta({ id: 'Related', description: 'A record that this one refers to.' });

export const sentName = filledLine(200).meta({ id: 'DisplayName', description: 'Name shown to people.' });
/** Of what is there, or comes from elsewhere: as long as the name of an object may be. */
export const sentSlug = slug(63).meta({ id: 'Slug', description: 'Name in paths and in Kubernetes. Cannot be changed.' });
/** Of what is made. */
export const newSlug = slug(longestSlug).meta({
  id: 'NewSlug',
  description: 'Name in paths and in Kubernetes; made from the name when absent.',
});

function slug(maxLength: number): z.ZodString {
  return z
    .string()
    .min(1)
    .max(maxLength)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, 'must be lower-case letters, digits and -, and begin and end with a letter or digit');
}

export function nameOf(object: PosthornObject<ServedKind>): string {
  return object.spec.name ?? object.metadata.name;
}

/** The `spec.name` that a sent name means: the name as it was shown, sent back, changes nothing. */
export function nameToSpec(sent: string | undefined, current: PosthornObject<ServedKind> | undefined): string | undefined {
  return current !== undefined && (sent === undefined || sent === nameOf(current)) ? current.spec.name : sent;
}

/** The value in a spec that a sent one means: not sent, it stays as it is; null takes it away. */
export function clearableToSpec<T>(sent: T | null | undefined, current: T | undefined): T | undefined {
  return sent === undefined ? current : (sent ?? undefined);
}

export function identityOf(object: PosthornObject<ServedKind>, { caller }: Pick<Call, 'caller'>) {
  return { id: idOf(object), organizationId: caller.organization.id, name: nameOf(object), slug: object.metadata.name };
}

/** Whether a record is in use, under both its names; `enabled` is the field of the spec. */
export function recordSwitch(enabled: z.ZodDefault<z.ZodBoolean>) {
  return { enabled: shownField(enabled), isActive: z.boolean().describe('The same as enabled.') };
}

export function sentSwitch(enabled: z.ZodDefault<z.ZodBoolean>) {
  return { enabled: specField(enabled), isActive: sentSynonym(z.boolean(), 'enabled') };
}

type SwitchedKind = 'Source' | 'Destination' | 'Route' | 'NotificationChannel';

export function switchOf({ spec }: PosthornObject<SwitchedKind>): { enabled: boolean; isActive: boolean } {
  return { enabled: spec.enabled, isActive: spec.enabled };
}

export function switchSynonym<K extends SwitchedKind>(): Synonym<K, boolean, boolean> {
  return sameAs('enabled', (object) => switchOf(object).enabled);
}

/** `updatedAt` is the last change of anything but the status, as far as the store tells. */
export function timesOf({ metadata }: PosthornObject<ServedKind>) {
  const changes = (metadata.managedFields ?? []).flatMap((entry) =>
    entry.subresource === undefined && entry.time !== undefined ? [entry.time] : [],
  );
  const updatedAt = changes.reduce((latest, time) => (Date.parse(time) > Date.parse(latest) ? time : latest), metadata.creationTimestamp);
  return { createdAt: isoTime(Date.parse(metadata.creationTimestamp)), updatedAt: isoTime(Date.parse(updatedAt)) };
}

/** ISO 8601 in UTC of milliseconds since the epoch. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}
