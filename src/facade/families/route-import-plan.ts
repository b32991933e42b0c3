import { setImmediate as otherRequests } from 'node:timers/promises';
import { PosthornError } from '../../core/errors.ts';
import type { PosthornObject, SpecInputOf } from '../../resources/kinds.ts';
import { toPosthornError } from '../error-response.ts';
import type { Call } from '../operation.ts';
import { refuseInadmissible } from '../resources/dry-run.ts';
import { byName, cachedObjects } from '../resources/lookup.ts';
import type { ConflictStrategy } from '../resources/portable.ts';
import { nameOf } from '../resources/record-fields.ts';
import { planChange } from '../resources/write.ts';
import { bodyOf, type ImportedRoute, referencesOf } from './portable-route.ts';
import { connectionOf, specOfRoute } from './route-spec.ts';

type Route = PosthornObject<'Route'>;
type Spec = SpecInputOf<'Route'>;

/** What is to be done with one record. */
export type RouteStep =
  | { status: 'created'; name: string; spec: Spec }
  | { status: 'overwritten'; name: string; spec: Spec; current: Route }
  /** `current` null: a record before makes it. */
  | { status: 'skipped'; name: string; current: Route | null };

export interface RouteImportPlan {
  /** In the order of the records; incomplete when there are errors. */
  steps: RouteStep[];
  errors: string[];
  warnings: string[];
}

const longestName = 200;

/** Judges all records of an import and writes nothing. The caller holds the lock of the organization. */
export class RouteImportPlanner {
  readonly #call: Call;
  readonly #strategy: ConflictStrategy;
  /** What each name stands for after the records so far; null: a route that is made or changed by one of them. */
  readonly #byName: Map<string, Route | null>;
  /** Names that several routes have. */
  readonly #ambiguous: ReadonlySet<string>;
  /** Names of routes by what they connect. */
  readonly #connections: Map<string, string>;
  readonly #missing = new Map<string, Promise<boolean>>();

  constructor(call: Call, strategy: ConflictStrategy) {
    this.#call = call;
    this.#strategy = strategy;
    const routes = cachedObjects(call, 'Route');
    this.#byName = new Map(routes.map((route) => [nameOf(route), route]));
    this.#ambiguous = new Set([...Map.groupBy(routes, nameOf)].flatMap(([name, { length }]) => (length > 1 ? [name] : [])));
    this.#connections = new Map(routes.map((route) => [connectionOf(route.spec), nameOf(route)]));
  }

  async plan(records: readonly ImportedRoute[]): Promise<RouteImportPlan> {
    const plan: RouteImportPlan = { steps: [], errors: [], warnings: [] };
    for (const record of records) {
      // What is judged comes from caches: without this a thousand records are one turn.
      await otherRequests();
      const missing = await this.#missingOf(record);
      plan.errors.push(...missing);
      if (missing.length > 0) continue;
      try {
        const step = await this.#stepFor(record);
        if (step.name !== record.name) plan.warnings.push(`There is a route "${record.name}" already: imported as "${step.name}".`);
        if (step.status === 'skipped' && step.current === null)
          plan.warnings.push(`Route "${record.name}" stands in the document more than once: only the first is imported.`);
        plan.steps.push(step);
      } catch (thrown) {
        const error = toPosthornError(thrown);
        if (error.code === 'INTERNAL' || error.code === 'UNAVAILABLE') throw thrown;
        plan.errors.push(`Route "${record.name}": ${error.message}`);
      }
    }
    return plan;
  }

  async #stepFor(record: ImportedRoute): Promise<RouteStep> {
    const current = this.#byName.get(record.name);
    if (current === undefined) return this.#create(record, record.name);
    switch (this.#strategy) {
      case 'skip':
        return { status: 'skipped', name: record.name, current };
      case 'rename':
        return this.#create(record, this.#freeName(record.name));
      case 'overwrite':
        if (current === null) throw new PosthornError('VALIDATION_FAILED', 'it stands in the document twice.');
        if (this.#ambiguous.has(record.name))
          throw new PosthornError('VALIDATION_FAILED', 'several routes have this name: rename them, so that it is clear which is meant.');
        return this.#overwrite(record, current);
    }
  }

  async #create(record: ImportedRoute, name: string): Promise<RouteStep> {
    const spec = await specOfRoute(this.#call, { ...bodyOf(record), name }, undefined);
    refuseInadmissible(this.#call, 'Route', spec);
    this.#connect(spec, name);
    this.#byName.set(name, null);
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
    this.#connections.delete(connectionOf(current.spec));
    this.#connect(spec, record.name);
    this.#byName.set(record.name, null);
    return { status: 'overwritten', name: record.name, spec, current };
  }

  /** DUPLICATE_ROUTE, but for rename, which is meant to make copies (API decisions, "Family A"). */
  #connect(spec: Spec, name: string): void {
    const connection = connectionOf(spec);
    const twin = this.#connections.get(connection);
    if (twin !== undefined && this.#strategy !== 'rename') {
      throw new PosthornError('DUPLICATE_ROUTE', `the route "${twin}" connects the same source and destinations.`);
    }
    this.#connections.set(connection, name);
  }

  /** `Name (2)`, `Name (3)`, … */
  #freeName(name: string): string {
    for (let number = 2; ; number++) {
      const suffix = ` (${number})`;
      const candidate = [...name].slice(0, longestName - suffix.length).join('') + suffix;
      if (!this.#byName.has(candidate)) return candidate;
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
