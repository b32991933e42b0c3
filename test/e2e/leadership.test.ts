import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { registryKeys } from '../../src/data/registry/registry-keys.ts';
import { type CuttableLine, startCuttableLine } from '../support/cuttable-line.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/ports.ts';
import type { Program } from '../support/program.ts';
import { type ControlPlaneWorld, startControlPlaneWorld } from './control-plane-world.ts';
import { Shop } from './manifests.ts';

const keys = registryKeys('posthorn:');
const lease = z.object({ spec: z.object({ holderIdentity: z.string() }) });
const report = z.object({ notes: z.object({ leadership: z.string() }) });

describe('two controllers', () => {
  const shop = new Shop('leadership');
  const destinations = Array.from({ length: 40 }, (_, i) => `d${i}`);
  let world: ControlPlaneWorld;
  let first: Program;
  let second: Program;
  let third: Program;
  /** From the third to the API server. */
  let line: CuttableLine;

  const isLeading = async (port: number): Promise<boolean> => {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    return report.parse(await response.json()).notes.leadership === 'leading';
  };
  /** A controller that leads, or could. */
  const startReady = async (options: { kubeconfig?: string } = {}): Promise<Program> => {
    const port = await freePort();
    const program = world.start('controller', { ...options, opsPort: port });
    await eventually('the controller to be ready', 60_000, async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200);
    return program;
  };
  const throughTheLine = () => ({ kubeconfig: world.kubeconfig('controller', `https://127.0.0.1:${line.port}`) });
  const holderOfLease = async (): Promise<string> => {
    const path = '/apis/coordination.k8s.io/v1/namespaces/posthorn-system/leases/posthorn-controller';
    return lease.parse(await world.controlPlane.request('GET', path)).spec.holderIdentity;
  };
  const publishedPaths = async (): Promise<string[]> => {
    const records = await world.redis.client.hvals(keys.records('destination'));
    return records.map((json) => new URL(JSON.parse(json).http.url).pathname);
  };
  const changeAll = (path: string) => world.apply(destinations.map((name) => shop.destination(name, `https://example.com${path}`)));
  const allPublished = (path: string) =>
    eventually(`all destinations to be published with ${path}`, 60_000, async () => {
      const paths = await publishedPaths();
      return paths.length === destinations.length && paths.every((each) => each === path);
    });

  beforeAll(async () => {
    world = await startControlPlaneWorld();
    const organization = shop.organization([]);
    const port = await freePort();
    first = world.start('controller', { opsPort: port });
    await eventually('the first to lead', 60_000, async () => await isLeading(port));
    await world.apply([organization]);
    await world.waitUntilReady(organization);
    await world.apply(shop.secrets);
    await changeAll('/first');
    await allPublished('/first');
  }, 240_000);
  afterAll(async () => {
    first?.signal('SIGCONT');
    await world?.stop();
    await line?.stop();
  });

  test('one leads and the other one waits, ready to take over', async () => {
    second = await startReady();
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(second.output()).not.toContain('controllers are running');
    await changeAll('/both');
    await allPublished('/both');
  }, 150_000);

  test('a leader that was stopped for longer than its lease publishes nothing when it continues, and ends', async () => {
    // Stopped in the middle of its work, so that it has changes to publish when it resumes.
    const changes = changeAll('/while-working');
    await new Promise((resolve) => setTimeout(resolve, 30));
    first.signal('SIGSTOP');
    await changes;
    await second.waitForOutput(/controllers are running/, 60_000);
    await changeAll('/second');
    await allPublished('/second');
    const sequence = await world.redis.client.get(keys.sequence);
    const epoch = await world.redis.client.get(keys.epoch);
    first.signal('SIGCONT');
    const seen = new Set<string>();
    const watching = eventually('the first to end', 30_000, async () => {
      for (const path of await publishedPaths()) seen.add(path);
      return first.output().includes('leadership is lost') || first.output().includes('CONFLICT');
    });
    expect(await first.ended).toBe(1);
    await watching;
    expect([...seen]).toEqual(['/second']);
    expect(await world.redis.client.get(keys.sequence)).toBe(sequence);
    expect(await world.redis.client.get(keys.epoch)).toBe(epoch);
  }, 240_000);

  test('a leader that is asked to end hands over at once', async () => {
    const { hostname: host, port } = new URL(world.controlPlane.url);
    line = await startCuttableLine({ host, port: Number(port) });
    third = world.start('controller', throughTheLine());
    const holder = await holderOfLease();
    second.signal('SIGTERM');
    expect(await second.ended).toBe(0);
    // No candidate waits for the end of a Lease that is given back.
    expect(await holderOfLease()).not.toBe(holder);
    await third.waitForOutput(/controllers are running/);
    await changeAll('/third');
    await allPublished('/third');
  }, 150_000);

  test('a leader that is cut off from the API server gives way, publishes nothing more, and comes back as one that waits', async () => {
    const fourth = await startReady();
    line.cut();
    await changeAll('/fourth');
    await fourth.waitForOutput(/controllers are running/, 60_000);
    await allPublished('/fourth');
    expect(await third.ended).toBe(1);
    expect(third.output()).toContain('leadership is lost');
    await changeAll('/alone');
    await allPublished('/alone');
    line.mend();
    const returned = await startReady(throughTheLine());
    await changeAll('/healed');
    await allPublished('/healed');
    expect(returned.output()).not.toContain('controllers are running');
  }, 240_000);
});
