import { randomUUID } from 'node:crypto';
import type { PosthornObject } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { mapConcurrently } from '../../records/concurrently.ts';
import { cachedObjects, find } from '../../records/lookup.ts';
import type { RecordWrite } from '../../records/record-write.ts';
import { itemKey, madeUnder, placeUnder } from '../../records/request-marks.ts';
import { slugOf } from '../../records/slug.ts';
import { changeSpec, createObject, deleteObject } from '../../records/write.ts';
import type { KnownRoutes, RouteStep } from './route-import-plan.ts';

type Route = PosthornObject<'Route'>;

/** The writes of one import. Each route that is made bears a mark, by which it is found again: also one whose answer was lost, and by an equal request after a crash. */
export class RouteImportWrites implements KnownRoutes {
  readonly #call: Call;
  readonly #note: RecordWrite;
  readonly #mark: string;
  readonly made: ReadonlyMap<number, Route>;
  /** By uid, what was there before, which no import takes back. */
  readonly #there: ReadonlySet<string>;
  readonly #undo: (() => Promise<void>)[] = [];

  private constructor(call: Call, note: RecordWrite, mark: string, made: ReadonlyMap<number, Route>) {
    this.#call = call;
    this.#note = note;
    this.#mark = mark;
    this.made = made;
    this.#there = new Set(this.there().map(({ metadata }) => metadata.uid));
    if (made.size > 0) this.#undo.push(() => this.#removeMade());
  }

  static async begin(call: Call, note: RecordWrite): Promise<RouteImportWrites> {
    const { idempotency } = call;
    const mark = idempotency?.mark ?? randomUUID();
    const made = idempotency?.isTakenOver === true ? await madeUnder(call, 'Route', mark) : [];
    return new RouteImportWrites(call, note, mark, new Map(made));
  }

  there(): Route[] {
    const routes = cachedObjects(this.#call, 'Route');
    return this.#call.idempotency?.isTakenOver === true
      ? routes.filter((route) => placeUnder(this.#call, this.#mark, route) === null)
      : routes;
  }

  /** Does all steps, one for each record. Returns what was written, null where nothing was. Who catches an error takes back what was done. */
  async write(steps: readonly RouteStep[]): Promise<(Route | null)[]> {
    if (this.made.size === 0) this.#undo.push(() => this.#removeMade());
    // Whoever has the lock next waits for the last write alone.
    const lastIndex = steps.findLastIndex(({ status }) => status !== 'skipped');
    const written = await mapConcurrently(steps, async (step, index) => (index === lastIndex ? null : this.#write(step, index)));
    const last = steps[lastIndex];
    if (last === undefined) return written;
    const route = await this.#write(last, lastIndex);
    if (route !== null) this.#note(route);
    return written.with(lastIndex, route);
  }

  /** What this import, and an equal one before, has done; that it could not be taken back is logged. */
  async takeBack(): Promise<void> {
    await mapConcurrently(this.#undo, (each) => this.#quietly(each));
  }

  async #write(step: RouteStep, index: number): Promise<Route | null> {
    const call = this.#call;
    switch (step.status) {
      case 'skipped':
        return null;
      case 'created': {
        const slug = { base: slugOf(step.name, 'route') };
        return step.made ?? (await createObject(call, 'Route', slug, async () => step.spec, itemKey(this.#mark, index)));
      }
      case 'overwritten': {
        let isKnown = false;
        const load = async (): Promise<Route> => {
          const route = await find(call, 'Route', step.current.metadata.name);
          if (!isKnown) this.#undo.push(async () => void (await changeSpec(call, 'Route', load, async () => route.spec)));
          isKnown = true;
          return route;
        };
        return (await changeSpec(call, 'Route', load, async () => step.spec)).after;
      }
    }
  }

  async #removeMade(): Promise<void> {
    const marked = await madeUnder(this.#call, 'Route', this.#mark);
    const made = marked.flatMap(([, route]) => (this.#there.has(route.metadata.uid) ? [] : [route]));
    await mapConcurrently(made.slice(1), (route) => this.#quietly(() => deleteObject(this.#call, route)));
    const [last] = made;
    if (last === undefined) return;
    await deleteObject(this.#call, last);
    this.#note(last, true);
  }

  async #quietly(action: () => Promise<void>): Promise<void> {
    await action().catch((cause: unknown) =>
      this.#call.services.logger.warn({ err: cause }, 'the rollback of a failed route import is incomplete'),
    );
  }
}
