import type { z } from 'zod';
import { canonicalJson } from '../../core/canonical-json.ts';
import { PosthornError } from '../../core/errors.ts';
import type { ObjectOf } from '../../resources/kinds.ts';
import type { Call } from '../http/operation.ts';
import type { ServedKind } from '../http/services.ts';

/** Another name of a field of a body, as clients of the hosted API send it. Records show both. */
export interface Synonym<K extends ServedKind, Value, Field> {
  /** The field. */
  of: string;
  /** Value of the synonym when the field has this value. */
  shownFor(field: Field): Value;
  /** Value of the field; `current`: its present one, absent on create. */
  meant(sent: Value, current: Field | undefined, call: Call): Field | Promise<Field>;
  /** Value in a record. */
  current(object: ObjectOf<K>, call: Call): Field | Promise<Field>;
  /** Whether they mean the same although they are not written so, as an id and a slug do. */
  agrees?(field: Field, sent: Value, call: Call): boolean | Promise<boolean>;
  /** Whether the synonym decides in a create that sends both, which is otherwise refused when they differ. */
  decides?: true;
}

// biome-ignore lint/suspicious/noExplicitAny: the values of each are its own affair
export type Synonyms<K extends ServedKind> = Readonly<Record<string, Synonym<K, any, any>>>;

interface Input<K extends ServedKind> {
  call: Call;
  body: object;
  current?: ObjectOf<K>;
}

/**
 * The body with fields in place of their synonyms. A record that is sent back has both: the changed one counts. VALIDATION_FAILED when both
 * were, or a new record has both, and they differ.
 */
export async function withoutSynonyms<K extends ServedKind>(
  synonyms: Synonyms<K>,
  { call, body, current }: Input<K>,
): Promise<Record<string, unknown>> {
  const fields: Record<string, unknown> = { ...body };
  for (const [name, synonym] of Object.entries<Synonym<K, unknown, unknown>>(synonyms)) {
    const sent = fields[name];
    delete fields[name];
    if (sent === undefined) continue;
    const { of, meant, shownFor } = synonym;
    const field = fields[of];
    if (field !== undefined && (await isMeantBy(synonym, { sent, field, call }))) continue;
    const before = current === undefined ? undefined : await synonym.current(current, call);
    if (before !== undefined && isSame(shownFor(before), sent)) continue;
    const isFieldChanged = field !== undefined && !(before !== undefined && isSame(field, before));
    if (isFieldChanged && !(synonym.decides === true && current === undefined)) throw contradiction(of, name);
    fields[of] = await meant(sent, before ?? field, call);
  }
  return fields;
}

/** VALIDATION_FAILED for a body in which a field and its synonym differ and that is no record sent back, such as one of a document. */
export async function refuseContradictions<K extends ServedKind>(
  synonyms: Synonyms<K>,
  { call, body }: { call: Call; body: Readonly<Record<string, unknown>> },
): Promise<void> {
  for (const [name, synonym] of Object.entries<Synonym<K, unknown, unknown>>(synonyms)) {
    const [sent, field] = [body[name], body[synonym.of]];
    if (sent === undefined || field === undefined || synonym.decides === true) continue;
    if (!(await isMeantBy(synonym, { sent, field, call }))) throw contradiction(synonym.of, name);
  }
}

/** The value that a field has under both its names; VALIDATION_FAILED when they contradict each other. */
export function underBothNames<Field>(body: object, { of, synonym }: { of: string; synonym: string }): Field | undefined {
  const { [of]: field, [synonym]: sent } = body as Readonly<Record<string, Field | undefined>>;
  if (field !== undefined && sent !== undefined && !isSame(field, sent)) throw contradiction(of, synonym);
  return field ?? sent;
}

async function isMeantBy<K extends ServedKind>(
  { shownFor, agrees }: Synonym<K, unknown, unknown>,
  { sent, field, call }: { sent: unknown; field: unknown; call: Call },
): Promise<boolean> {
  return isSame(shownFor(field), sent) || (agrees !== undefined && (await agrees(field, sent, call)));
}

function isSame(one: unknown, other: unknown): boolean {
  return canonicalJson(one) === canonicalJson(other);
}

function contradiction(field: string, synonym: string): PosthornError {
  return new PosthornError('VALIDATION_FAILED', `${field} and ${synonym} are the same field and contradict each other.`, {
    details: { [field]: [`contradicts ${synonym}`] },
  });
}

/** A synonym in a body, which the document calls deprecated. */
export function sentSynonym<Field extends z.ZodType>(schema: Field, of: string): z.ZodOptional<Field> {
  return schema.optional().meta({ description: `The same as ${of}.`, deprecated: true });
}

/** A synonym that always has the value of its field. */
export function sameAs<K extends ServedKind, Field>(
  of: string,
  current: (object: ObjectOf<K>, call: Call) => Field | Promise<Field>,
): Synonym<K, Field, Field> {
  return { of, shownFor: (field) => field, meant: (sent) => sent, current };
}
