import { afterAll, beforeAll, beforeEach, describe } from '@jest/globals';
import { applyCases } from './cases/apply.ts';
import { createCases } from './cases/create.ts';
import { deleteCases } from './cases/delete.ts';
import { listCases } from './cases/list.ts';
import { secretsCases } from './cases/secrets.ts';
import { statusCases } from './cases/status.ts';
import { validationCases } from './cases/validation.ts';
import { watchCases } from './cases/watch.ts';
import { StoreContext, type StoreUnderTest } from './store-context.ts';

/** What every adapter of `ResourceStore` must do, as the Kubernetes API server does it. */
export function describeStore(name: string, factory: () => Promise<StoreUnderTest>, setupMs: number): void {
  describe(`resource store ${name}`, () => {
    const context = new StoreContext();
    let subject: StoreUnderTest | null = null;

    beforeAll(async () => {
      subject = await factory();
      context.use(subject);
    }, setupMs);
    afterAll(() => subject?.close(), setupMs);
    beforeEach(() => context.makeNamespace());

    createCases(context);
    validationCases(context);
    applyCases(context);
    statusCases(context);
    deleteCases(context);
    listCases(context);
    watchCases(context);
    secretsCases(context);
  });
}
