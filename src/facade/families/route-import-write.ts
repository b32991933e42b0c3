import type { PosthornObject } from '../../resources/kinds.ts';
import type { Call } from '../operation.ts';
import { mapConcurrently } from '../resources/concurrently.ts';
import type { NoteWrite } from '../resources/exclusive.ts';
import { find } from '../resources/lookup.ts';
import { slugOf } from '../resources/slug.ts';
import { changeSpec, createObject, deleteObject } from '../resources/write.ts';
import type { RouteStep } from './route-import-plan.ts';

type Route = PosthornObject<'Route'>;
type Undo = () => Promise<void>;

/** Does all steps, or takes back those that were done and throws. Answers what was written, null where nothing was. */
export async function writeRoutes(call: Call, steps: readonly RouteStep[], note: NoteWrite): Promise<(Route | null)[]> {
  const undo: Undo[] = [];
  try {
    // Whoever has the lock next waits for the last write alone.
    const lastIndex = steps.findLastIndex(({ status }) => status !== 'skipped');
    const written = await mapConcurrently(steps, async (step, index) => (index === lastIndex ? null : write(call, step, undo)));
    const last = steps[lastIndex];
    if (last === undefined) return written;
    const route = await write(call, last, undo);
    if (route !== null) note(route);
    return written.with(lastIndex, route);
  } catch (error) {
    await mapConcurrently(undo, (each) =>
      each().catch((cause: unknown) =>
        call.services.logger.warn({ err: cause }, 'an import of routes that failed was not taken back whole'),
      ),
    );
    throw error;
  }
}

async function write(call: Call, step: RouteStep, undo: Undo[]): Promise<Route | null> {
  switch (step.status) {
    case 'skipped':
      return null;
    case 'created': {
      const made = await createObject(call, 'Route', { base: slugOf(step.name, 'route') }, async () => step.spec);
      undo.push(() => deleteObject(call, made));
      return made;
    }
    case 'overwritten': {
      const { name } = step.current.metadata;
      const load = () => find(call, 'Route', name);
      const { before, after } = await changeSpec(call, 'Route', load, async () => step.spec);
      if (before !== after) undo.push(async () => void (await changeSpec(call, 'Route', load, async () => before.spec)));
      return after;
    }
  }
}
