import { z } from 'zod';
import { canonicalJson } from '../../core/canonical-json.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import { throwIfAbandoned } from '../../core/loop-turns.ts';
import { wrongType } from '../../resources/complaints.ts';
import { isRecord } from '../../resources/field-tree.ts';
import type { PosthornObject } from '../../resources/kinds.ts';
import { parseBody } from '../body.ts';
import { toPosthornError } from '../error-response.ts';
import { type Call, type Operation, operation } from '../operation.ts';
import type { ResourceFamilyDefinition } from '../resource-family-definition.ts';
import { whole, writeChange, writeNew } from '../resource-writes.ts';
import { mapConcurrently } from '../resources/concurrently.ts';
import { judgeChange, judgeNew } from '../resources/dry-run.ts';
import { awaitInForce, waitAfter } from '../resources/in-force.ts';
import { byName, cachedObjects } from '../resources/lookup.ts';
import { type ConflictStrategy, importBodyBytes, importFields, mostImported } from '../resources/portable.ts';
import { madeUnder, placeMark } from '../resources/request-marks.ts';
import { refuseReservedSlug, slugOf } from '../resources/slug.ts';
import { refuseBeyondLimit, type WantedSlug } from '../resources/write.ts';
import { authConfig, isRedacted, keepsRedacted, plainFields, redacted, redactedConfig } from './destination-auth.ts';
import { unusedFields } from './destination-export.ts';
import { importedTls, tlsBody } from './destination-tls.ts';
import { importedConfig, lacksStoreCredential, warehouseConfig } from './destination-warehouse.ts';
import { importedHeaders } from './static-headers.ts';

type Destination = PosthornObject<'Destination'>;
type Definition = ResourceFamilyDefinition<'Destination', z.ZodObject, z.ZodObject>;

const names = z.array(z.string());
const outcomes = ['imported', 'skipped', 'overwritten', 'failed'] as const;
type Outcome = (typeof outcomes)[number];

const result = z.object({
  success: z.boolean().describe('Whether nothing failed.'),
  summary: z.object({ imported: z.int(), skipped: z.int(), overwritten: z.int(), failed: z.int() }),
  details: z.object({ imported: names, skipped: names, overwritten: names, failed: names }).describe('Names of the records.'),
  errors: z.array(z.object({ name: z.string(), code: z.string(), message: z.string() })).describe('Why records failed.'),
  warnings: z.array(z.string()).describe('What is left to do, such as sending credentials.'),
});

/** An object that is taken as it is: what is wrong with it is wrong with that record alone. */
const importedRecord = z
  .custom<Record<string, unknown>>(isRecord, { error: ({ input }) => wrongType('object', input) })
  .meta({ type: 'object', properties: {}, additionalProperties: {} });

/** What became of one record. */
interface Judged {
  name: string;
  outcome: Outcome;
  written?: Destination;
  error?: PosthornError;
  warnings?: string[];
}

/** API document, "Destinations": import. `definition` says what a destination of the API is. */
export function destinationImportOperation(definition: Definition): Operation {
  return operation({
    method: 'POST',
    path: '/destinations/import',
    operationId: 'importDestinations',
    summary: 'Import destinations',
    description: [
      `Takes an export document, or its records, at most ${mostImported}. Each record is judged by itself; what fails does not hold up the others.`,
      'Conflicts are decided by slug. Records without their credentials are imported disabled; with overwrite they keep the stored ones.',
    ].join(' '),
    scope: 'write',
    body: z.strictObject({
      destinations: z.array(importedRecord).max(mostImported).describe('Records as an export has them.'),
      ...importFields,
    }),
    records: 'destinations',
    maxBodyBytes: importBodyBytes,
    requestExample: {
      destinations: [{ name: 'Orders', slug: 'orders', url: 'https://shop.example.com/webhooks', isActive: true }],
      conflictStrategy: 'skip',
    },
    answer: { status: 200, description: 'What became of each record.', schema: result },
    handle: async (call) => {
      const { destinations, conflictStrategy, validateOnly = false } = call.body;
      const startedAtMs = call.services.clock.now();
      const importer = new DestinationImport(definition, call, conflictStrategy, validateOnly);
      const judged = await importer.run(destinations);
      const timeoutMs = waitAfter(call, startedAtMs);
      await Promise.all(
        judged.flatMap(({ written }) => (written === undefined ? [] : [awaitInForce(call, 'Destination', written, timeoutMs)])),
      );
      return answerOf(judged);
    },
  });
}

class DestinationImport {
  readonly #definition: Definition;
  readonly #call: Call;
  readonly #strategy: ConflictStrategy;
  readonly #validateOnly: boolean;
  readonly #schema: z.ZodObject;
  /** Slugs that records before have taken in a dry run. */
  readonly #planned = new Set<string>();
  /** How many destinations there are with those of this import, which the caches do not show at once, or at all in a dry run. */
  #count: number;
  /** What an equal request that was broken off has made, by the index of the record. */
  #made: ReadonlyMap<number, Destination> = new Map();

  constructor(definition: Definition, call: Call, strategy: ConflictStrategy, validateOnly: boolean) {
    this.#definition = definition;
    this.#call = call;
    this.#strategy = strategy;
    this.#validateOnly = validateOnly;
    this.#count = cachedObjects(call, 'Destination').length;
    this.#schema = definition.body.extend({
      authConfig: z
        .union([z.literal(redacted), authConfig])
        .nullable()
        .optional(),
      hasSigningSecret: z.boolean().optional(),
    });
  }

  /** In the order of the records. Those of one slug are taken one after the other, so that the later ones see the earlier. */
  async run(records: readonly Record<string, unknown>[]): Promise<Judged[]> {
    const { idempotency } = this.#call;
    if (idempotency?.isTakenOver === true) this.#made = new Map(await madeUnder(this.#call, 'Destination', idempotency.mark));
    const numbered: { record: Record<string, unknown>; index: number; slug: string }[] = [];
    for (const [index, record] of records.entries()) {
      await this.#call.turn.rest();
      numbered.push({ record, index, slug: slugIn(record) ?? slugOfName(record) ?? `#${index}` });
    }
    const groups = [...Map.groupBy(numbered, ({ slug }) => slug).values()];
    const judged: Judged[] = [];
    await mapConcurrently(groups, async (group) => {
      for (const { record, index } of group) {
        await this.#call.turn.rest();
        if (this.#validateOnly) throwIfAbandoned(this.#call.signal);
        judged[index] = await this.#judge(record, index);
      }
    });
    return judged;
  }

  async #judge(raw: Record<string, unknown>, index: number): Promise<Judged> {
    const name = typeof raw['name'] === 'string' ? raw['name'] : (slugIn(raw) ?? `record ${index + 1}`);
    try {
      const record: Record<string, unknown> = parseBody(this.#schema, raw, {
        readOnly: readOnly(this.#definition),
        fieldCodes: this.#definition.fieldCodes,
      });
      if (record['name'] === undefined) throw new PosthornError('VALIDATION_FAILED', 'name is required.');
      const slug = slugIn(record) ?? slugOf(name, 'destination');
      refuseReservedSlug(slug);
      return { name, ...(await this.#take({ ...record, slug }, slug, index)) };
    } catch (thrown) {
      const error = toPosthornError(thrown);
      if (error.code === 'INTERNAL' || error.code === 'UNAVAILABLE') throw thrown;
      return { name, outcome: 'failed', error };
    }
  }

  async #take(record: Record<string, unknown>, slug: string, index: number): Promise<Omit<Judged, 'name'>> {
    const call = this.#call;
    const { namespace } = call.caller.organization;
    const made = this.#made.get(index);
    const written = made === undefined ? null : await whole(call, made);
    if (written !== null) return { outcome: 'imported', written, warnings: (await withoutRedacted(record, undefined, call)).missing };
    const warnings: string[] = [];
    const definition: Definition = {
      ...this.#definition,
      toSpec: async (input) => {
        const { body, missing } = await withoutRedacted(record, input.current, call);
        warnings.splice(0, warnings.length, ...missing);
        return this.#definition.toSpec({ ...input, body });
      },
    };
    const isThere = async (): Promise<boolean> => {
      if (call.services.caches.Destination.get({ namespace, name: slug }) !== undefined) return true;
      return this.#validateOnly && (this.#planned.has(slug) || (await byName(call, 'Destination', slug)) !== null);
    };
    if (!(await isThere())) {
      try {
        return { outcome: 'imported', written: await this.#create(definition, { exact: slug }, record, index), warnings };
      } catch (error) {
        if (!isPosthornError(error, 'ALREADY_EXISTS')) throw error;
      }
    }
    switch (this.#strategy) {
      case 'skip':
        return { outcome: 'skipped' };
      case 'rename':
        return { outcome: 'imported', written: await this.#create(definition, { base: slug }, record, index), warnings };
      case 'overwrite':
        return { outcome: 'overwritten', written: await this.#overwrite(definition, slug, record), warnings };
    }
  }

  async #create(definition: Definition, slug: WantedSlug, record: Record<string, unknown>, index: number) {
    const { idempotency } = this.#call;
    const mark = idempotency === null ? undefined : placeMark(idempotency.mark, index);
    // Counted here and not by the cache, which may or may not hold what earlier records of this import have made.
    refuseBeyondLimit(this.#call, 'Destination', this.#count + 1);
    this.#count++;
    try {
      if (!this.#validateOnly) return await writeNew(definition, this.#call, slug, record, mark);
      await judgeNew(definition, this.#call, record);
    } catch (error) {
      this.#count--;
      throw error;
    }
    if ('exact' in slug) this.#planned.add(slug.exact);
    return undefined;
  }

  async #overwrite(definition: Definition, slug: string, record: Record<string, unknown>) {
    if (!this.#validateOnly) return writeChange(definition, this.#call, slug, record);
    if (!this.#planned.has(slug)) await judgeChange(definition, this.#call, slug, record);
    return undefined;
  }
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
    else if ((hasSigningSecret === true || typeof signing === 'string') && stored?.signingSecretRef === undefined)
      missing.push('signingSecret');
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

function readOnly({ record, body }: Definition): string[] {
  return Object.keys(record.shape).filter((field) => !(field in body.shape));
}

/** The slug that a record without one gets. */
function slugOfName({ name }: Record<string, unknown>): string | null {
  return typeof name === 'string' ? slugOf(name, 'destination') : null;
}

function slugIn({ slug }: Record<string, unknown>): string | null {
  return typeof slug === 'string' ? slug : null;
}

function answerOf(judged: readonly Judged[]): z.input<typeof result> {
  const of = (outcome: Outcome): string[] => judged.filter((each) => each.outcome === outcome).map(({ name }) => name);
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
    errors: judged.flatMap(({ name, error }) => (error === undefined ? [] : [{ name, code: error.code, message: error.message }])),
    warnings: judged.flatMap(({ warnings = [] }) => warnings),
  };
}
