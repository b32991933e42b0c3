import { randomUUID } from 'node:crypto';
import type { PosthornObject } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { cachedObjects } from '../../records/lookup.ts';
import { indexInRequest, itemKey, madeUnder } from '../../records/request-keys.ts';
import { slugOf } from '../../records/slug.ts';
import type { WriteTransaction } from '../../records/write-transaction.ts';
import type { KnownRoutes, RouteStep } from './route-import-plan.ts';

type Route = PosthornObject<'Route'>;

/** The writes of one import. Each created route carries a request mark, by which it is found again: after a lost response, and by an equal request after a crash. */
export class RouteImportWrites implements KnownRoutes {
  readonly #call: Call;
  readonly #transaction: WriteTransaction;
  readonly #mark: string;
  readonly made: ReadonlyMap<number, Route>;
  /** By uid, what was there before, which no import takes back. */
  readonly #there: ReadonlySet<string>;

  private constructor(call: Call, transaction: WriteTransaction, mark: string, made: ReadonlyMap<number, Route>) {
    this.#call = call;
    this.#transaction = transaction;
    this.#mark = mark;
    this.made = made;
    this.#there = new Set(this.there().map(({ metadata }) => metadata.uid));
    if (made.size > 0) transaction.onRollback(() => this.#removeMade());
  }

  static async begin(call: Call, transaction: WriteTransaction): Promise<RouteImportWrites> {
    const { idempotency } = call;
    const mark = idempotency?.mark ?? randomUUID();
    const made = idempotency?.isTakenOver === true ? await madeUnder(call, 'Route', mark) : [];
    return new RouteImportWrites(call, transaction, mark, new Map(made));
  }

  there(): Route[] {
    const routes = cachedObjects(this.#call, 'Route');
    return this.#call.idempotency?.isTakenOver === true
      ? routes.filter((route) => indexInRequest(this.#call, this.#mark, route) === null)
      : routes;
  }

  /** Does all steps, one for each record. Returns what was written, null where nothing was. */
  async write(steps: readonly RouteStep[]): Promise<(Route | null)[]> {
    if (this.made.size === 0) this.#transaction.onRollback(() => this.#removeMade());
    const written: (Route | null)[] = steps.map(() => null);
    const writes = steps.flatMap((step, index) => (step.status === 'skipped' ? [] : [{ step, index }]));
    await this.#transaction.all(writes, async ({ step, index }) => {
      written[index] = await this.#write(step, index);
    });
    return written;
  }

  async #write(step: Exclude<RouteStep, { status: 'skipped' }>, index: number): Promise<Route | null> {
    const transaction = this.#transaction;
    switch (step.status) {
      case 'created': {
        if (step.made !== undefined) return await transaction.adopt(step.made);
        return await transaction.create('Route', { base: slugOf(step.name, 'route') }, async () => step.spec, itemKey(this.#mark, index));
      }
      case 'overwritten': {
        const { name } = step.current.metadata;
        let isFirst = true;
        return await transaction.change('Route', name, async ({ spec: before }) => {
          if (isFirst) transaction.onRollback(async () => void (await transaction.change('Route', name, async () => before)));
          isFirst = false;
          return step.spec;
        });
      }
    }
  }

  async #removeMade(): Promise<void> {
    const marked = await madeUnder(this.#call, 'Route', this.#mark);
    const made = marked.flatMap(([, route]) => (this.#there.has(route.metadata.uid) ? [] : [route]));
    await this.#transaction.takeBack(made);
  }
}
