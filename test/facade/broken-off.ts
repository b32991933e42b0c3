import { createHash } from 'node:crypto';
import { idempotencyKeys } from '../../src/data/intake/idempotent-answers.ts';
import type { FacadeWorld } from './facade-world.ts';

/** Leaves what was done under an Idempotency-Key in `acme` as a process leaves it that was killed before it kept the answer: the claim has run out. */
export async function breakOff(world: FacadeWorld, key: string): Promise<void> {
  const { answers } = idempotencyKeys('test:', await world.organizationId('acme'));
  const field = createHash('sha256').update(key).digest('base64url');
  const request = (await world.redis.client.hget(answers, field))?.split('|')[1];
  await world.redis.client.hset(answers, field, `c|killed|${request}|1`);
}
