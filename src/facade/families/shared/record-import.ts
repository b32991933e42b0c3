import { z } from 'zod';
import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { throwIfAbandoned } from '../../../core/loop-turns.ts';
import { wrongType } from '../../../resources/complaints.ts';
import { isRecord } from '../../../resources/field-tree.ts';
import type { ObjectOf } from '../../../resources/kinds.ts';
import { parseBody } from '../../http/body.ts';
import { toPosthornError } from '../../http/error-response.ts';
import { type Call, type Operation, operation } from '../../http/operation.ts';
import type { ServedKind } from '../../http/services.ts';
import { mapConcurrently } from '../../records/concurrently.ts';
import { byName, countCached } from '../../records/lookup.ts';
import { nouns } from '../../records/nouns.ts';
import { type ConflictStrategy, importBodyBytes, importFields, maxImported } from '../../records/portable.ts';
import { itemKey, madeUnder } from '../../records/request-keys.ts';
import type { ResourceFamilyDefinition } from '../../records/resource-family-definition.ts';
import { validateChange, validateNew, writeChange, writeNew } from '../../records/resource-writes.ts';
import { refuseReservedSlug, slugOf, type WantedSlug } from '../../records/slug.ts';
import { refuseContradictions } from '../../records/synonyms.ts';
import { refuseBeyondLimit } from '../../records/write-rules.ts';
import { WriteTransaction } from '../../records/write-transaction.ts';

type Definition<K extends ServedKind> = ResourceFamilyDefinition<K, z.ZodObject, z.ZodObject>;

const names = (outcome: string) => z.array(z.string()).describe(`Names of the ${outcome}.`);
const number = (outcome: string) => z.int().describe(`How many are ${outcome}.`);
const outcomes = ['imported', 'skipped', 'overwritten', 'failed'] as const;
type Outcome = (typeof outcomes)[number];

const result = z
  .object({
    success: z.boolean().describe('Whether nothing failed.'),
    summary: z
      .object({ imported: number('new'), skipped: number('skipped'), overwritten: number('overwritten'), failed: number('refused') })
      .describe('Number of records by result.'),
    details: z
      .object({ imported: names('new'), skipped: names('skipped'), overwritten: names('overwritten'), failed: names('refused') })
      .describe('Names of the records.'),
    errors: z
      .array(
        z.object({
          name: z.string().describe('Name of the record.'),
          code: z.string().describe('Code of the error.'),
          message: z.string().describe('What is wrong with it.'),
        }),
      )
      .describe('Why records failed.'),
    warnings: z.array(z.string()).describe('Remaining steps, such as sending credentials.'),
  })
  .meta({ id: 'ImportResult', description: 'The result for each record.' });

/** An object that is taken as it is: what is wrong with it is wrong with that record alone. */
const importedRecord = z
  .custom<Record<string, unknown>>(isRecord, { error: ({ input }) => wrongType('object', input) })
  .meta({ type: 'object', properties: {}, additionalProperties: {} });

/** Result of one record. */
interface RecordResult {
  name: string;
  outcome: Outcome;
  error?: PosthornError;
  warnings?: string[];
}

/** Imported records. */
export interface Imported<K extends ServedKind> {
  /** Definition of its records in the API. */
  definition: Definition<K>;
  /** In the path and in the body. */
  collection: string;
  operationId: string;
  description: string;
  example: Record<string, unknown>;
  /** Fields of exports beside those of the body. */
  portable: z.ZodRawShape;
  /** The body that the record means beside what is there, and what it leaves to be done. */
  bodyOf(
    record: Record<string, unknown>,
    current: ObjectOf<K> | undefined,
    call: Call,
  ): Promise<{ body: Record<string, unknown>; missing: string[] }>;
}

export function importOperation<K extends ServedKind>(imported: Imported<K>): Operation {
  const { definition, collection, operationId, description, example } = imported;
  return operation({
    method: 'POST',
    path: `/${collection}/import`,
    operationId,
    summary: `Import ${collection}`,
    description: [
      `Accepts an export document, or its records, at most ${maxImported}. Each record is validated separately; one that fails does not hold up the others.`,
      description,
    ].join(' '),
    scope: 'write',
    body: z.strictObject({
      [collection]: z.array(importedRecord).max(maxImported).describe('Records as an export has them.'),
      ...importFields,
    }),
    records: collection,
    maxBodyBytes: importBodyBytes,
    requestExample: { [collection]: [example], conflictStrategy: 'skip' },
    answer: { status: 200, description: 'The result for each record.', schema: result },
    handle: async (call) => {
      const { [collection]: records, conflictStrategy, validateOnly = false } = bodySchema.loose().parse(call.body);
      const results = await WriteTransaction.run(call, { reads: definition.writesRead, isImport: true }, (write) =>
        new RecordImport(imported, call, write, conflictStrategy, validateOnly).run(z.array(importedRecord).parse(records)),
      );
      return answerOf(results);
    },
  });
}

const bodySchema = z.object(importFields);

class RecordImport<K extends ServedKind> {
  readonly #imported: Imported<K>;
  readonly #definition: Definition<K>;
  readonly #noun: string;
  readonly #call: Call;
  readonly #write: WriteTransaction;
  readonly #strategy: ConflictStrategy;
  readonly #validateOnly: boolean;
  readonly #schema: z.ZodObject;
  /** Slugs that records before have taken in a dry run. */
  readonly #planned = new Set<string>();
  /** How many there are with those of this import, which the caches do not show at once, or at all in a dry run. */
  #count: number;
  /** Objects that an equal, aborted request has made, by the index of the record. */
  #made: ReadonlyMap<number, ObjectOf<K>> = new Map();

  constructor(imported: Imported<K>, call: Call, write: WriteTransaction, strategy: ConflictStrategy, validateOnly: boolean) {
    const { definition, portable } = imported;
    this.#imported = imported;
    this.#definition = definition;
    this.#noun = nouns[definition.kind];
    this.#call = call;
    this.#write = write;
    this.#strategy = strategy;
    this.#validateOnly = validateOnly;
    this.#count = countCached(call, definition.kind);
    this.#schema = definition.body.extend(portable);
  }

  /** In the order of the records. Those of one slug are taken one after the other, so that the later ones see the earlier. */
  async run(records: readonly Record<string, unknown>[]): Promise<RecordResult[]> {
    const { idempotency } = this.#call;
    if (idempotency?.isTakenOver === true) this.#made = new Map(await madeUnder(this.#call, this.#definition.kind, idempotency.mark));
    const numbered: { record: Record<string, unknown>; index: number; slug: string }[] = [];
    for (const [index, record] of records.entries()) {
      await this.#call.turn.rest();
      numbered.push({ record, index, slug: slugIn(record) ?? this.#slugOfName(record) ?? `#${index}` });
    }
    const groups = [...Map.groupBy(numbered, ({ slug }) => slug).values()];
    const results: RecordResult[] = [];
    await mapConcurrently(groups, async (group) => {
      for (const { record, index } of group) {
        await this.#call.turn.rest();
        if (this.#validateOnly) throwIfAbandoned(this.#call.signal);
        results[index] = await this.#importOne(record, index);
      }
    });
    return results;
  }

  async #importOne(raw: Record<string, unknown>, index: number): Promise<RecordResult> {
    const name = typeof raw['name'] === 'string' ? raw['name'] : (slugIn(raw) ?? `record ${index + 1}`);
    try {
      const record: Record<string, unknown> = parseBody(this.#schema, raw, {
        readOnly: readOnly(this.#definition, this.#schema),
        fieldCodes: this.#definition.fieldCodes,
      });
      await refuseContradictions(this.#definition.synonyms ?? {}, { call: this.#call, body: record });
      if (record['name'] === undefined) throw new PosthornError('VALIDATION_FAILED', 'name is required.');
      const slug = slugIn(record) ?? slugOf(name, this.#noun);
      refuseReservedSlug(slug);
      return { name, ...(await this.#take({ ...record, slug }, slug, index)) };
    } catch (thrown) {
      const error = toPosthornError(thrown);
      if (error.code === 'INTERNAL' || error.code === 'UNAVAILABLE') throw thrown;
      return { name, outcome: 'failed', error };
    }
  }

  async #take(record: Record<string, unknown>, slug: string, index: number): Promise<Omit<RecordResult, 'name'>> {
    const call = this.#call;
    const { namespace } = call.caller.organization;
    const made = this.#made.get(index);
    if (made !== undefined && (await this.#write.adopt(made)) !== null)
      return { outcome: 'imported', warnings: (await this.#imported.bodyOf(record, undefined, call)).missing };
    const warnings: string[] = [];
    const definition: Definition<K> = {
      ...this.#definition,
      toSpec: async (input) => {
        const { body, missing } = await this.#imported.bodyOf(record, input.current, call);
        warnings.splice(0, warnings.length, ...missing);
        return this.#definition.toSpec({ ...input, body });
      },
    };
    const isThere = async (): Promise<boolean> => {
      if (call.services.caches[this.#definition.kind].get({ namespace, name: slug }) !== undefined) return true;
      return this.#validateOnly && (this.#planned.has(slug) || (await byName(call, this.#definition.kind, slug)) !== null);
    };
    if (!(await isThere())) {
      try {
        await this.#create(definition, { exact: slug }, record, index);
        return { outcome: 'imported', warnings };
      } catch (error) {
        if (!isPosthornError(error, 'ALREADY_EXISTS')) throw error;
      }
    }
    switch (this.#strategy) {
      case 'skip':
        return { outcome: 'skipped' };
      case 'rename':
        await this.#create(definition, { base: slug }, record, index);
        return { outcome: 'imported', warnings };
      case 'overwrite':
        await this.#overwrite(definition, slug, record);
        return { outcome: 'overwritten', warnings };
    }
  }

  async #create(definition: Definition<K>, slug: WantedSlug, record: Record<string, unknown>, index: number): Promise<void> {
    const { idempotency } = this.#call;
    const mark = idempotency === null ? undefined : itemKey(idempotency.mark, index);
    // Counted here and not by the cache, which may or may not hold what earlier records of this import have made.
    refuseBeyondLimit(this.#call, this.#definition.kind, this.#count + 1);
    this.#count++;
    try {
      if (this.#validateOnly) await validateNew(definition, this.#call, record);
      else await writeNew(definition, this.#call, this.#write, slug, record, mark);
    } catch (error) {
      this.#count--;
      throw error;
    }
    if (this.#validateOnly && 'exact' in slug) this.#planned.add(slug.exact);
  }

  async #overwrite(definition: Definition<K>, slug: string, record: Record<string, unknown>): Promise<void> {
    if (!this.#validateOnly) await writeChange(definition, this.#call, this.#write, slug, record);
    else if (!this.#planned.has(slug)) await validateChange(definition, this.#call, slug, record);
  }

  /** The slug that a record without one gets. */
  #slugOfName({ name }: Record<string, unknown>): string | null {
    return typeof name === 'string' ? slugOf(name, this.#noun) : null;
  }
}

function readOnly({ record }: Pick<Definition<ServedKind>, 'record'>, schema: z.ZodObject): string[] {
  return Object.keys(record.shape).filter((field) => !(field in schema.shape));
}

function slugIn({ slug }: Record<string, unknown>): string | null {
  return typeof slug === 'string' ? slug : null;
}

function answerOf(results: readonly RecordResult[]): z.input<typeof result> {
  const of = (outcome: Outcome): string[] => results.filter((each) => each.outcome === outcome).map(({ name }) => name);
  const details = { imported: of('imported'), skipped: of('skipped'), overwritten: of('overwritten'), failed: of('failed') };
  return {
    success: details.failed.length === 0,
    summary: {
      imported: details.imported.length,
      skipped: details.skipped.length,
      overwritten: details.overwritten.length,
      failed: details.failed.length,
    },
    details,
    errors: results.flatMap(({ name, error }) => (error === undefined ? [] : [{ name, code: error.code, message: error.message }])),
    warnings: results.flatMap(({ warnings = [] }) => warnings),
  };
}
