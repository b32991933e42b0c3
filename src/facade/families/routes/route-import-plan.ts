import { PosthornError } from '../../../core/errors.ts';
import { throwIfAbandoned } from '../../../core/loop-turns.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import { toPosthornError } from '../../http/error-response.ts';
import type { Call } from '../../http/operation.ts';
import { byName } from '../../records/lookup.ts';
import { fieldManaged } from '../../records/owned-spec.ts';
import type { ConflictStrategy } from '../../records/portable.ts';
import { nameOf } from '../../records/record-fields.ts';
import { planChange, refuseBeyondLimit, refuseInadmissible } from '../../records/write-rules.ts';
import { bodyOf, type ImportedRoute, referencesOf } from './portable-route.ts';
import { connectionOf, specOfRoute } from './route-spec.ts';

type Route = PosthornObject<'Route'>;
type Spec = SpecInputOf<'Route'>;

/** Planned step for one record. `made`: it is done. */
export type RouteStep =
  | { status: 'created'; name: string; spec: Spec; made?: Route }
  | { status: 'overwritten'; name: string; spec: Spec; current: Route }
  | { status: 'skipped'; name: string; current: Route };

export interface RouteImportPlan {
  /** Steps in the order of the records; incomplete if there are errors. */
  steps: RouteStep[];
  errors: string[];
  warnings: string[];
}

export interface KnownRoutes {
  /** Routes that an equal, aborted request has made, by the index of the record. */
  readonly made: ReadonlyMap<number, Route>;
  /** The other routes. */
  there(): Route[];
}

const longestName = 200;

/**
 * Validates all records of an import and writes nothing. The caller holds the organization lock. Names conflict with those of existing routes, not with each other:
 * routes of one organization may have the same name. If no record has an error, throws the error of the whole import: FIELD_MANAGED with all managed fields, or
 * FORBIDDEN beyond the limit of the organization.
 */
export class RouteImportPlanner {
  readonly #call: Call;
  readonly #strategy: ConflictStrategy;
  readonly #records: readonly ImportedRoute[];
  readonly #made: ReadonlyMap<number, Route>;
  /** Number of existing routes. */
  readonly #count: number;
  /** Existing routes. */
  readonly #there: ReadonlyMap<string, readonly Route[]>;
  /** Names that several records have. */
  readonly #repeated: ReadonlySet<string>;
  /** Names that are no longer free. */
  readonly #taken: Set<string>;
  /** Names of the routes that stay as they are, by what they connect. */
  readonly #kept: ReadonlyMap<string, string>;
  /** The first record with each connection so far. `isUnchanged`: its route is there and connects the same already. */
  readonly #imported = new Map<string, { name: string; isUnchanged: boolean }>();
  readonly #missing = new Map<string, Promise<boolean>>();

  constructor(call: Call, strategy: ConflictStrategy, records: readonly ImportedRoute[], known: KnownRoutes) {
    this.#call = call;
    this.#strategy = strategy;
    this.#records = records;
    this.#made = known.made;
    const routes = known.there();
    this.#count = routes.length;
    const named = Map.groupBy(records, ({ name }) => name);
    this.#there = Map.groupBy(routes, nameOf);
    this.#repeated = new Set([...named].flatMap(([name, { length }]) => (length > 1 ? [name] : [])));
    this.#taken = new Set([...this.#there.keys(), ...named.keys(), ...[...known.made.values()].map(nameOf)]);
    const kept = routes.filter((route) => strategy !== 'overwrite' || !named.has(nameOf(route)));
    this.#kept = new Map(kept.map((route) => [connectionOf(route.spec), nameOf(route)]));
  }

  async plan(): Promise<RouteImportPlan> {
    const plan: RouteImportPlan = { steps: [], errors: [], warnings: [] };
    const foreign: Record<string, string[]> = {};
    for (const [index, record] of this.#records.entries()) {
      // Validation reads caches only: without this a thousand records block the event loop.
      await this.#call.turn.rest();
      throwIfAbandoned(this.#call.signal);
      const made = this.#made.get(index);
      const missing = made === undefined ? await this.#missingOf(record) : [];
      plan.errors.push(...missing);
      if (missing.length > 0) continue;
      try {
        const step: RouteStep =
          made === undefined ? await this.#stepFor(record) : { status: 'created', name: nameOf(made), spec: made.spec, made };
        if (step.name !== record.name) plan.warnings.push(`There is a route "${record.name}" already: imported as "${step.name}".`);
        if (step.status !== 'skipped') plan.warnings.push(...this.#repetition(step));
        plan.steps.push(step);
      } catch (thrown) {
        const error = toPosthornError(thrown);
        if (error.code === 'INTERNAL' || error.code === 'UNAVAILABLE') throw thrown;
        if (error.code !== 'FIELD_MANAGED') plan.errors.push(`Route "${record.name}": ${error.message}`);
        else for (const [path, managers] of Object.entries(error.details ?? {})) foreign[`Route "${record.name}": ${path}`] = managers;
      }
    }
    if (plan.errors.length > 0) return plan;
    if (Object.keys(foreign).length > 0) throw fieldManaged(foreign);
    const created = plan.steps.filter(({ status }) => status === 'created').length;
    if (created > 0) refuseBeyondLimit(this.#call, 'Route', this.#count + created);
    return plan;
  }

  async #stepFor(record: ImportedRoute): Promise<RouteStep> {
    const [current, ...others] = this.#there.get(record.name) ?? [];
    if (current === undefined) return this.#create(record, record.name);
    switch (this.#strategy) {
      case 'skip':
        return { status: 'skipped', name: record.name, current };
      case 'rename':
        return this.#create(record, this.#freeName(record.name));
      case 'overwrite':
        if (this.#repeated.has(record.name) || others.length > 0) {
          const who = others.length > 0 ? 'routes' : 'routes of the document';
          throw new PosthornError('VALIDATION_FAILED', `several ${who} have this name: rename them, so that it is clear which is meant.`);
        }
        return this.#overwrite(record, current);
    }
  }

  async #create(record: ImportedRoute, name: string): Promise<RouteStep> {
    const spec = await specOfRoute(this.#call, { ...bodyOf(record), name }, undefined);
    refuseInadmissible(this.#call, 'Route', spec);
    this.#refuseDuplicate(spec);
    return { status: 'created', name, spec };
  }

  async #overwrite(record: ImportedRoute, current: Route): Promise<RouteStep> {
    const { sourceSlug } = record;
    if (sourceSlug !== current.spec.sourceRef.name) {
      const message = `its source is "${current.spec.sourceRef.name}" and cannot be changed to "${sourceSlug}"; delete the route first.`;
      throw new PosthornError('VALIDATION_FAILED', message);
    }
    const spec = await specOfRoute(this.#call, bodyOf(record), current);
    refuseInadmissible(this.#call, 'Route', spec, current);
    planChange(current, spec);
    if (connectionOf(spec) !== connectionOf(current.spec)) this.#refuseDuplicate(spec);
    return { status: 'overwritten', name: record.name, spec, current };
  }

  /** Refuses a route that connects the same source and destinations (DUPLICATE_ROUTE); `rename` is exempt, because it is meant to make copies. */
  #refuseDuplicate(spec: Spec): void {
    const twin = this.#kept.get(connectionOf(spec));
    if (twin !== undefined && this.#strategy !== 'rename')
      throw new PosthornError('DUPLICATE_ROUTE', `the route "${twin}" connects the same source and destinations.`);
  }

  /**
   * Throws DUPLICATE_ROUTE if an earlier record makes the same connection; not with rename. Adds a warning if no record makes it: both routes exist with the
   * connection, or have lost their destinations.
   */
  #repetition(step: Exclude<RouteStep, { status: 'skipped' }>): string[] {
    const { name, spec, status } = step;
    const connection = connectionOf(spec);
    const isUnchanged = status === 'overwritten' ? connectionOf(step.current.spec) === connection : step.made !== undefined;
    const twin = this.#imported.get(connection);
    if (twin === undefined) this.#imported.set(connection, { name, isUnchanged });
    if (twin === undefined || this.#strategy === 'rename') return [];
    const complaint = `connects the same source and destinations as the route "${twin.name}" of the document`;
    if ((isUnchanged && twin.isUnchanged) || (spec.destinationRefs ?? []).length === 0) return [`Route "${name}" ${complaint}.`];
    throw new PosthornError('DUPLICATE_ROUTE', `it ${complaint}; conflictStrategy rename imports both.`);
  }

  /** `Name (2)`, `Name (3)`, … */
  #freeName(name: string): string {
    for (let number = 2; ; number++) {
      const suffix = ` (${number})`;
      const candidate = [...name].slice(0, longestName - suffix.length).join('') + suffix;
      if (this.#taken.has(candidate)) continue;
      this.#taken.add(candidate);
      return candidate;
    }
  }

  async #missingOf(record: ImportedRoute): Promise<string[]> {
    const checked = referencesOf(record).map(async ({ kind, noun, slug }) => {
      const key = `${noun} ${slug}`;
      const isMissing = this.#missing.get(key) ?? byName(this.#call, kind, slug).then(isNull);
      this.#missing.set(key, isMissing);
      return (await isMissing) ? [`Route "${record.name}" needs the ${noun} "${slug}", which does not exist here.`] : [];
    });
    return [...new Set((await Promise.all(checked)).flat())];
  }
}

function isNull(value: unknown): boolean {
  return value === null;
}
