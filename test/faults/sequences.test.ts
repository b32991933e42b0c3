import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { idAnnotation } from '../../src/core/ids.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import { allObjects, type ConfigurationSnapshot, nameOf, snapshotOf, versionsOf } from '../support/configuration-snapshot.ts';
import type { ConfigurationWorld } from '../support/configuration-world.ts';
import type { CrashPoint } from '../support/crashing-process.ts';
import { declare, deleteSecrets, keyOf, namespace, organization } from '../support/every-kind.ts';
import { faultWorlds } from './fault-worlds.ts';
import { isWebhook, pool, type Step, steps } from './generated-steps.ts';

/** `POSTHORN_FAULT_RUNS=200` runs longer, with another seed each time. */
const wantedRuns = process.env['POSTHORN_FAULT_RUNS'];
const numRuns = wantedRuns === undefined ? 6 : wantedRuns === 'all' ? 200 : Number(wantedRuns);
const runs = { numRuns, ...(wantedRuns === undefined ? { seed: 20_261_121 } : {}) };

const worlds = faultWorlds();

/** Controllers that an organization is there for. */
async function newWorld(deathOf: () => CrashPoint | null = () => null): Promise<ConfigurationWorld> {
  const world = worlds.next({ deathOf });
  world.start();
  await declare(world.store, organization());
  await world.until(() => world.store.get('Namespace', { name: namespace }));
  return world;
}

test(
  'whatever is declared and deleted in whatever order: it converges, new controllers find nothing to do, controllers that know nothing come to the same, nothing is left',
  async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const lived = await livedThrough(taken);
        try {
          const ended = await snapshotOf(lived);
          await expectNothingToDo(lived, ended);
          await expectAsAnew(lived, ended);
          await expectNothingLeft(lived);
        } finally {
          await lived.stop();
        }
      }),
      runs,
    );
  },
  120_000 + numRuns * 10_000,
);

async function livedThrough(taken: readonly Step[]): Promise<ConfigurationWorld> {
  let death: CrashPoint | null = null;
  const world = await newWorld(() => {
    const next = death;
    death = null;
    return next;
  });
  for (const step of taken) {
    switch (step.do) {
      case 'declare':
        await take(world, step);
        break;
      case 'delete':
        await remove(world, step);
        break;
      case 'restart':
        await world.restart();
        break;
      case 'die':
        death = { changes: step.changes };
        await world.restart();
        break;
      case 'pass':
        await world.pass(step.ms);
        break;
      default:
        step satisfies never;
    }
  }
  await world.settle();
  return world;
}

async function take(world: ConfigurationWorld, { at, variant }: { at: number; variant: number }): Promise<void> {
  const variants = pool[at % pool.length] ?? [];
  const { object, isInvalid } = variants[variant % variants.length] ?? { object: organization(), isInvalid: false };
  const declaring = declare(world.store, object);
  if (isInvalid) await expect(declaring).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
  else await declaring;
}

async function remove(world: ConfigurationWorld, { at }: { at: number }): Promise<void> {
  const object = pool[at % pool.length]?.[0]?.object;
  if (object === undefined || object.kind === 'Organization') return;
  await world.store.delete(object.kind, keyOf(object.kind, object.metadata.name)).catch((error: unknown) => {
    expect(error).toMatchObject({ code: 'RESOURCE_NOT_FOUND' });
  });
}

/** Neither those that are there nor those after them write anything. */
async function expectNothingToDo(world: ConfigurationWorld, ended: ConfigurationSnapshot): Promise<void> {
  const versions = await versionsOf(world);
  await world.resync(1);
  await world.restart();
  await world.settle();
  expect(await versionsOf(world)).toEqual(versions);
  expect(await snapshotOf(world)).toEqual(ended);
}

/**
 * Controllers that begin with the same resources and an empty Redis report the same of what is accepted and resolved, and what they put in force is the
 * same record. Where they put nothing in force, an earlier generation may be, which they cannot know.
 */
async function expectAsAnew(lived: ConfigurationWorld, ended: ConfigurationSnapshot): Promise<void> {
  const anew = await newWorld();
  try {
    for (const object of await allObjects(lived.store)) {
      if (object.kind === 'Namespace' || object.kind === 'DeliveryPool') continue;
      const { name } = object.metadata;
      if (object.kind === 'Secret') {
        const { data = {} } = await lived.store.getSecret({ namespace, name });
        await declare(anew.store, { kind: 'Secret', metadata: { namespace, name }, data });
      } else {
        const { annotations = {} } = object.metadata;
        await declare(anew.store, { kind: object.kind, metadata: { ...keyOf(object.kind, name), annotations }, spec: object.spec });
      }
    }
    await anew.settle();
    const fresh = await snapshotOf(anew);
    expect(Object.keys(fresh.objects).sort()).toEqual(Object.keys(ended.objects).sort());
    expect(await comparableTo(fresh, fresh, anew)).toEqual(await comparableTo(fresh, ended, lived));
  } finally {
    await anew.stop();
  }
}

/** What `snapshot` says of the things that `fresh` has in force, and of all others what their specs decide. */
async function comparableTo(
  fresh: ConfigurationSnapshot,
  { objects, records, webhooks }: ConfigurationSnapshot,
  world: ConfigurationWorld,
): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const object of await allObjects(world.store)) {
    const name = nameOf(object);
    const isInForce = conditionsIn(fresh.objects[name])['Programmed']?.startsWith('True') === true;
    const conditions = conditionsIn(objects[name]);
    const id = object.metadata.annotations?.[idAnnotation] ?? 'none';
    const record = Object.entries({ ...records, ...webhooks }).find(([key]) => key === id || key.endsWith(` ${id}`))?.[1];
    found[name] = {
      ...(isWebhook(name) && !isInForce ? {} : { accepted: conditions['Accepted'], resolvedRefs: conditions['ResolvedRefs'] }),
      ...(isInForce ? { programmed: conditions['Programmed'], record: withoutCounts(record) } : {}),
    };
  }
  return found;
}

/** Type → `status reason`. */
function conditionsIn(object: unknown): Record<string, string> {
  const status = isRecord(object) ? object['status'] : undefined;
  const conditions = isRecord(status) && Array.isArray(status['conditions']) ? status['conditions'].filter(isRecord) : [];
  return Object.fromEntries(conditions.map(({ type, status: value, reason }) => [String(type), `${value} ${reason}`]));
}

/** How often something has changed is what lives differ in. */
function withoutCounts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutCounts);
  if (!isRecord(value)) return value;
  const members = Object.entries(value).filter(([name]) => !['generation', 'version', 'schemaVersion'].includes(name));
  return Object.fromEntries(members.map(([name, member]) => [name, withoutCounts(member)]));
}

async function expectNothingLeft(world: ConfigurationWorld): Promise<void> {
  await deleteSecrets(world);
  await world.store.delete('Organization', { name: 'acme' });
  await world.settle();
  expect(await snapshotOf(world)).toEqual({ objects: {}, records: {}, webhooks: {}, keys: [] });
}
