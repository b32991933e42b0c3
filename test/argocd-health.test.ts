import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';
import { type ConditionInputs, conditionInputs, conditionsOf, type Finding } from '../src/controllers/conditions.ts';
import { drainingConditionInputs, poolConditionInputs } from '../src/controllers/delivery-pool/pool-conditions.ts';
import { posthornKinds } from '../src/resources/kinds.ts';
import { type RedisServer, startRedis } from './support/redis.ts';

const directory = new URL('../config/argocd/', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, directory), 'utf8');
const configMap = z.object({ data: z.record(z.string(), z.string()) }).parse(parse(read('argocd-cm.yaml')));
const healthTests = z.object({
  tests: z.array(z.object({ healthStatus: z.object({ status: z.string(), message: z.string() }), inputPath: z.string() })),
});

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

/** The result of a Lua check for an object; the Lua of Redis is of the version that Argo CD runs, 5.1. */
async function health(check: string, object: unknown): Promise<{ status: string; message: string }> {
  const script = `local obj = cjson.decode(ARGV[1])\nlocal function check()\n${check}\nend\nlocal hs = check()\nreturn { hs.status, hs.message }`;
  const [status, message] = z.tuple([z.string(), z.string()]).parse(await redis.client.eval(script, 0, JSON.stringify(object)));
  return { status, message };
}

const checkOf = (kind: string): string => configMap.data[`resource.customizations.health.posthorn.dev_${kind}`] ?? 'no check';

test.each(healthTests.parse(parse(read('health_test.yaml'))).tests)(
  '$inputPath is $healthStatus.status',
  async ({ healthStatus, inputPath }) => {
    const object = parse(read(inputPath));
    expect(await health(checkOf(object.kind), object)).toEqual(healthStatus);
  },
);

/** What kstatus makes of an object that has a status: of `observedGeneration`, Reconciling and Stalled, then Ready. */
function kstatus({ metadata, status }: ReturnType<typeof seen>): 'InProgress' | 'Failed' | 'Current' {
  if (status.observedGeneration !== metadata.generation) return 'InProgress';
  for (const { type, status: value } of status.conditions) {
    if (type === 'Reconciling' && value === 'True') return 'InProgress';
    if (type === 'Stalled' && value === 'True') return 'Failed';
  }
  return status.conditions.some(({ type, status: value }) => type === 'Ready' && value !== 'True') ? 'InProgress' : 'Current';
}

/** An object as the controllers leave it. */
function seen(inputs: ConditionInputs, generation = 3) {
  return { metadata: { generation }, status: { observedGeneration: 3, conditions: conditionsOf(inputs, [], 3, 0) } };
}

const yes: Finding = { status: 'True', reason: 'Fine', message: '' };
const no: Finding = { status: 'False', reason: 'Missing', message: 'it is not there' };
const inForce = { accepted: yes, resolvedRefs: yes, programmed: yes, isStalled: false };
const deployment = { isCurrent: true, wanted: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2, available: yes };
const rolledOut = { ...deployment, progressing: { ...yes, reason: 'NewReplicaSetAvailable' } };
const stuck = { ...deployment, progressing: { ...no, reason: 'ProgressDeadlineExceeded' } };

describe('every kind is to Argo CD what it is to kstatus', () => {
  const cases: [string, ReturnType<typeof seen>, string, string][] = [
    ['in force', seen(conditionInputs(inForce)), 'Current', 'Healthy'],
    ['changed since', seen(conditionInputs(inForce), 4), 'InProgress', 'Progressing'],
    ['waiting for what it refers to', seen(conditionInputs({ ...inForce, resolvedRefs: no })), 'InProgress', 'Progressing'],
    ['not published yet', seen(conditionInputs({ ...inForce, programmed: no })), 'InProgress', 'Progressing'],
    ['refused', seen(conditionInputs({ ...inForce, accepted: no, isStalled: true })), 'Failed', 'Degraded'],
    ['a pool whose workers run', seen(poolConditionInputs(rolledOut, null)), 'Current', 'Healthy'],
    ['a pool without its Deployment', seen(poolConditionInputs(null, null)), 'InProgress', 'Progressing'],
    ['a pool whose workers do not come up', seen(poolConditionInputs(stuck, null)), 'Failed', 'Degraded'],
    ['a pool that drains', seen(drainingConditionInputs(2)), 'InProgress', 'Progressing'],
  ];

  test.each(cases)('%s', async (_, object, inKstatus, inArgoCd) => {
    expect(kstatus(object)).toBe(inKstatus);
    const found = await Promise.all(posthornKinds.map(async (kind) => `${kind} ${(await health(checkOf(kind), object)).status}`));
    expect(found).toEqual(posthornKinds.map((kind) => `${kind} ${inArgoCd}`));
  });
});
