import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { filterFingerprint } from '../../src/core/filter-evaluation.ts';
import type { SentAs } from '../../src/core/sent-as.ts';
import type { Outcome, TargetSetting } from '../../src/data/queue/delivery-queue.ts';
import type { RedisDeliveryQueue } from '../../src/data/queue/redis-delivery-queue.ts';
import { hashFields } from '../../src/data/shard/hash-fields.ts';
import { emptiedQueue } from '../support/emptied-queue.ts';
import { eventually } from '../support/eventually.ts';
import { newEvent } from '../support/new-event.ts';
import { attempt, dead, delivered, failure, settleAll, takeFrom } from '../support/queue-worker.ts';
import { type FacadeWorld, startFacadeWorld } from './facade-world.ts';

let world: FacadeWorld;
let org: string;
let stranger: string;
let queue: RedisDeliveryQueue;
beforeAll(async () => {
  world = await startFacadeWorld();
  org = await world.organizationId('acme');
  await world.addOrganization('stranger');
  stranger = await world.addKey('stranger');
});
afterAll(() => world.stop());
beforeEach(async () => {
  queue = await emptiedQueue(world);
});

const explain = async (id: string, key?: string) => (await world.request('GET', `/api/explain/${id}`, { key })).body;
const stepsOf = (body: { story: { what: string }[] }) => body.story.map(({ what }) => what);

async function accept(changes: Parameters<typeof newEvent>[0] = {}): Promise<{ eventId: string; id: string }> {
  const event = newEvent({ org, ...changes });
  await world.acceptor.accept(event);
  return { eventId: event.id, id: event.targets[0]?.messageId ?? '' };
}

async function end(outcome: Outcome | null, setting: Partial<TargetSetting> = {}): Promise<void> {
  const jobs = await takeFrom(queue, 'w1', 1, setting);
  if (outcome !== null) await settleAll(queue, 'w1', jobs, begunNow(outcome));
}

function begunNow(outcome: Outcome): Outcome {
  if (!('attempt' in outcome) || outcome.attempt === null) return outcome;
  return { ...outcome, attempt: { ...outcome.attempt, startedAtMs: Date.now() } };
}

const retry: Outcome = { type: 'retry', attempt: failure, delayMs: 3_600_000 };
const hourly = { mode: 'rate', rateLimit: 1, rateUnit: 'hour', maxConcurrency: null, queueLimit: null } as const;
const later = expect.stringMatching(/^\d{4}-.*Z$/);

test('a delivered message shows how it came in, was verified, matched, attempted and delivered', async () => {
  const { id, eventId } = await accept({ signatureValid: true });
  await end(delivered);
  const body = await explain(id);
  expect(body).toMatchObject({ id, kind: 'delivery', state: 'delivered', waitsFor: null, next: null, advice: [] });
  expect(stepsOf(body)).toEqual(['received', 'verified', 'matched', 'attempt', 'delivered']);
  expect(body.story[0].text).toBe('The source shop received the event (POST, 7 bytes).');
  expect(body.story[1].text).toBe('Its signature is valid.');
  expect(body.story[3]).toMatchObject({
    text: 'Attempt 1 succeeded after 5 ms: the receiver returned 200. Its body is the payload, unsigned.',
    data: { attemptNumber: 1, responseStatus: 200, payloadForm: 'full', signatureScheme: null },
  });
  expect(await explain(eventId)).toMatchObject({ kind: 'event', state: 'delivered', advice: [] });
});

test('a message that failed over shows when, between the attempts at both destinations', async () => {
  const { id } = await accept();
  const beganMs = Date.now();
  await end({ ...retry, delayMs: 0 }, { failover: { destinations: [{ id: 'dst_b', shard: 0 }], afterAttempts: 1 } });
  // The next attempt begins later than that, also by a clock of milliseconds.
  await new Promise((resolve) => setTimeout(resolve, 10));
  await end(delivered);
  const body = await explain(id);
  expect(body.state).toBe('delivered');
  expect(stepsOf(body)).toEqual(['received', 'verified', 'matched', 'attempt', 'failed_over', 'attempt', 'delivered']);
  const step = body.story[4];
  expect(step.text).toBe('It left the destination dst_a for the failover destination dst_b.');
  expect(Date.parse(step.at)).toBeGreaterThanOrEqual(beganMs);
  expect(Date.parse(step.at)).toBeLessThanOrEqual(Date.parse(body.story[5].at));
  const record = (await world.request('GET', `/api/deliveries/${id}`)).body;
  expect([record.failedOverFrom, Object.keys(record).includes('failedOverAtMs')]).toEqual(['dst_a', false]);
});

test('a message that failed waits for its next attempt, and the last one reports it', async () => {
  const { id, eventId } = await accept({ maxAttempts: 2 });
  await end(retry);
  const waits = {
    waitsFor: { reason: 'retry', until: later, text: expect.stringContaining('backoff') },
    next: { what: 'attempt', at: later, text: expect.stringMatching(/^Attempt 2 of 2 .+ if it fails, the message is given up here\.$/) },
  };
  expect(await explain(id)).toMatchObject({
    ...waits,
    state: 'retrying',
    advice: [{ command: expect.stringContaining('/destinations/dst_a/test') }],
  });
  expect(await explain(eventId)).toMatchObject({ ...waits, state: 'pending' });
});

test.each([
  [{}, 'Attempt 1 failed (http_error) after 5 ms: the receiver returned 500. status 500. Its body is the payload, unsigned.'],
  [
    { errorMessage: 'the receiver answered 500' },
    'Attempt 1 failed (http_error) after 5 ms: the receiver returned 500. Its body is the payload, unsigned.',
  ],
])('an attempt shows its error message unless that says the status alone (%j)', async (more, text) => {
  const { id } = await accept();
  await end({ ...retry, attempt: { ...failure, ...more } });
  expect((await explain(id)).story).toContainEqual(expect.objectContaining({ what: 'attempt', text }));
});

test.each<[SentAs, object, string]>([
  [{ isThin: true, scheme: null }, { payloadForm: 'thin', signatureScheme: null }, 'a link to the payload, unsigned'],
  [{ isThin: false, scheme: 'both' }, { payloadForm: 'full', signatureScheme: 'both' }, 'the payload, signed with hmac-sha256 and ed25519'],
])('a delivery, its attempts and its event show in which form it was sent, and signed with what (%j)', async (sentAs, form, words) => {
  const { id, eventId } = await accept();
  await end({ type: 'delivered', attempt: { ...attempt, sentAs } });
  const says = expect.stringMatching(new RegExp(`\\. Its body is ${words}\\.$`));
  for (const [asked, what] of [
    [id, 'attempt'],
    [eventId, 'delivery'],
  ] as const)
    expect((await explain(asked)).story).toContainEqual(expect.objectContaining({ what, text: says, data: expect.objectContaining(form) }));
  const { attemptDetails, ...record } = (await world.request('GET', `/api/deliveries/${id}`)).body;
  expect(attemptDetails).toMatchObject([form]);
  expect(Object.keys({ ...record, ...attemptDetails[0] })).not.toEqual(expect.arrayContaining([expect.stringMatching(/sentAs/i)]));
});

test('an attempt is under way only while a worker has the message', async () => {
  const { id } = await accept();
  await takeFrom(queue, 'w1', 1);
  expect(await explain(id)).toMatchObject({
    state: 'processing',
    summary: 'An attempt of the delivery is under way, after 0 of 3 attempts.',
  });
  const { id: moving } = await accept();
  await world.redis.client.hset(`test:{s0}:m:${moving.slice(6)}`, hashFields.message.status, 'm');
  expect(await explain(moving)).toMatchObject({
    state: 'pending',
    waitsFor: null,
    summary: 'The delivery has not ended, after 0 of 3 attempts.',
  });
});

test('a message that waits for an open circuit shows when it opened and how it is closed', async () => {
  const { id } = await accept();
  await end(retry, { circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 } });
  const body = await explain(id);
  expect(body).toMatchObject({
    state: 'circuit_open',
    waitsFor: { reason: 'circuit_open', until: later },
    next: { what: 'probe', at: later },
  });
  expect(body.story.at(-1)).toMatchObject({ what: 'circuit_opened', data: { state: 'open', consecutiveFailures: 1 } });
  expect(body.advice.map(({ command }: { command: string }) => command)).toContainEqual(
    expect.stringContaining('/routes/rte_a/reset-circuit'),
  );
});

test('a message that waits for a limiter shows until when', async () => {
  await accept();
  await end(delivered, { throttle: hourly });
  const { id } = await accept();
  await takeFrom(queue, 'w1', 1);
  expect(await explain(id)).toMatchObject({
    state: 'pending',
    waitsFor: { reason: 'rate_limit', until: later },
    next: { what: 'attempt' },
  });
});

test.each([
  ['d', 'destination_disabled', '/destinations/dst_a'],
  ['r', 'route_disabled', '/routes/rte_a'],
])('a message whose target is paused (%s) waits for %s, and shows how to enable it', async (pausedFor, reason, path) => {
  const { id } = await accept();
  const number = await world.redis.client.hget(`test:{s0}:tn:${org}`, 'rte_a dst_a');
  await world.redis.client.hset(`test:{s0}:t:${number}`, {
    [hashFields.target.pausedSinceMs]: Date.now(),
    [hashFields.target.pausedFor]: pausedFor,
  });
  const { waitsFor, advice, next } = await explain(id);
  expect([waitsFor.reason, next]).toEqual([reason, null]);
  expect(advice[0].command).toBe(
    `curl -X PATCH "$URL/api${path}" -H "x-api-key: $KEY" -H 'content-type: application/json' -d '{"isActive":true}'`,
  );
});

test('what Git has disabled is to be enabled there, and no command is shown for it', async () => {
  const destination = await world.create('destinations', { url: 'https://hooks.example.com/in' });
  const of = { kind: 'Destination', metadata: { namespace: 'acme', name: destination.slug } } as const;
  await world.store.apply({ ...of, spec: { enabled: false } }, { manager: 'argocd', force: true });
  const { id } = await accept({ destinations: [destination.id] });
  const number = await world.redis.client.hget(`test:{s0}:tn:${org}`, `rte_a ${destination.id}`);
  await world.redis.client.hset(`test:{s0}:t:${number}`, {
    [hashFields.target.pausedSinceMs]: Date.now(),
    [hashFields.target.pausedFor]: 'd',
  });
  const told = [{ text: 'Enable the destination where it is managed, for example in Git: by argocd.' }];
  await eventually(async () => expect((await explain(destination.id)).state).toBe('disabled'));
  expect((await explain(destination.id)).advice).toEqual(told);
  expect((await explain(id)).advice).toEqual(told);
});

test('a dead letter shows its reason and how it is replayed, and its replay names it', async () => {
  const { id, eventId } = await accept({ maxAttempts: 1 });
  await end(dead);
  const body = await explain(id);
  expect(body).toMatchObject({ state: 'dlq', waitsFor: null, next: null, summary: expect.stringContaining('all its attempts failed') });
  expect(stepsOf(body).slice(-2)).toEqual(['attempt', 'dead_letter']);
  expect(body.advice.at(-1).command).toContain(`/api/deliveries/${id}/replay`);
  expect((await explain(eventId)).advice).toMatchObject([{ command: expect.stringContaining(`/explain/${id}`) }]);
  const replay = (await world.request('POST', `/api/deliveries/${id}/replay`)).body.newDeliveryId;
  expect((await explain(replay)).story).toContainEqual(
    expect.objectContaining({ what: 'replayed', data: expect.objectContaining({ replayedFrom: id }) }),
  );
  const deadAt = body.story.at(-1).at;
  await eventually(async () => expect(Date.now()).toBeGreaterThan(Date.parse(deadAt)));
  expect((await world.request('POST', `/api/deliveries/${id}/archive`)).status).toBe(204);
  const archived = await explain(id);
  expect(archived).toMatchObject({ state: 'failed', summary: expect.stringContaining('archived'), advice: [] });
  expect(archived.story.slice(-2)).toMatchObject([
    { what: 'dead_letter', at: deadAt },
    { what: 'archived', at: later },
  ]);
  expect(Date.parse(archived.story.at(-1).at)).toBeGreaterThan(Date.parse(deadAt));
  expect((await world.request('GET', `/api/deliveries/${id}`)).body).not.toHaveProperty('deadSinceMs');
});

test('a message that a transform or a schema held back shows why nothing was sent', async () => {
  const { id } = await accept();
  await end({ type: 'unsent', status: 'transform_failed', reason: 'x is not a function', tookMs: 1 });
  expect(await explain(id)).toMatchObject({
    state: 'transform_failed',
    summary: 'Nothing was sent: the transform failed (x is not a function).',
  });
  const broken = newEvent({ org, destinations: [], invalidRoutes: { rte_s: 'no id' } });
  await world.acceptor.accept(broken);
  expect(await explain(broken.invalid[0]?.messageId ?? '')).toMatchObject({
    state: 'schema_failed',
    summary: 'Nothing was sent: the payload does not meet the schema of the route (no id).',
  });
});

test('a dead letter that has retries left says that its receiver rejected it', async () => {
  const { id } = await accept({ maxAttempts: 2 });
  await end(dead);
  expect((await explain(id)).summary).toContain('its receiver rejected it and allows no further attempt');
});

test('a dead letter whose destination is gone says that its id has to be requested', async () => {
  const { id } = await accept();
  await end({ type: 'dead', attempt: null, reason: 'destination_not_found' });
  expect((await explain(id)).advice[0].text).toContain('annotation posthorn.dev/id');
});

test('an event that a transform excluded names the transform, not the filter', async () => {
  const { eventId } = await accept();
  await end({ type: 'unsent', status: 'filtered', reason: 'no output', tookMs: 1 });
  expect((await explain(eventId)).advice).toMatchObject([{ text: expect.stringMatching(/^Read the transform of the route/) }]);
});

test('an event that no route took is shown as such, with how a route is made', async () => {
  const { eventId } = await accept({ destinations: [] });
  const body = await explain(eventId);
  expect(body).toMatchObject({ state: 'no_routes', summary: 'No route took the event. It has 0 deliveries.' });
  expect(body.advice.at(-1).command).toContain('-X POST "$URL/api/routes"');
});

test('an event that a filter excluded shows which condition was false, and with which value', async () => {
  const source = await world.create('sources');
  const destination = await world.create('destinations', { url: 'https://hooks.example.com/in' });
  const filterConditions = [{ field: 'payload.a', operator: 'gt', value: 10 }];
  const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id], filterConditions });
  const rule = (await world.registry.getOf(org, 'route', route.id))?.filter;
  if (rule == null) throw new Error('the route has no filter');
  const why = { rule: filterFingerprint(rule), reason: 'condition', condition: 0 } as const;
  const { eventId } = await accept({ destinations: [], filtered: [{ routeId: route.id, why }] });
  const body = await explain(eventId);
  expect(body.state).toBe('filtered');
  expect(body.story.at(-1)).toMatchObject({
    what: 'not_matched',
    text: `The route ${route.id} sent nothing: condition false (condition 1 (payload.a gt 10), and the event has 1).`,
  });
  expect(body.advice).toMatchObject([
    { text: expect.stringMatching(/^Read the filter of the route/), command: expect.stringContaining(`/routes/${route.id}`) },
  ]);
});

test('ids of another organization are unknown, and an unknown id reveals nothing but itself', async () => {
  const { id, eventId } = await accept();
  for (const each of [id, eventId]) {
    const own = await world.request('GET', `/api/explain/${each}`);
    const foreign = await world.request('GET', `/api/explain/${each}`, { key: stranger });
    expect([own.status, foreign.status, foreign.body.code]).toEqual([200, 404, 'RESOURCE_NOT_FOUND']);
    const madeAt = new Date(Number.parseInt(each.slice(6, 15), 36)).toISOString();
    expect(foreign.body.message).toBe(
      `There is nothing with the id "${each}". By its id it was made at ${madeAt}: what has ended is removed once its retention is over.`,
    );
  }
  const messages = await world.redis.client.keys('test:{s0}:*');
  await world.redis.client.del(messages);
  expect((await explain(id)).message).toContain('what has ended is removed');
});

test('a route and its destination show an open circuit, their backlog and their last failure', async () => {
  const source = await world.create('sources');
  const destination = await world.create('destinations', { url: 'https://hooks.example.com/in' });
  const route = await world.create('routes', { sourceId: source.id, destinationIds: [destination.id] });
  const event = newEvent({ org, destinations: [destination.id] });
  await world.acceptor.accept({ ...event, targets: event.targets.map((target) => ({ ...target, routeId: route.id })) });
  await end(retry, { circuit: { failureThreshold: 1, cooldownSeconds: 60, probeSuccessThreshold: 1 } });
  for (const { id } of [route, destination]) {
    const body = await explain(id);
    const [data] = body.story.filter(({ what }: { what: string }) => what === 'circuit').map((step: { data: unknown }) => step.data);
    expect(data).toMatchObject({ state: 'open', routeId: route.id, destinationId: destination.id, lastFailure: { responseStatus: 500 } });
    expect(body.story).toContainEqual(expect.objectContaining({ what: 'backlog', data: { fresh: 0, retries: 1 } }));
    expect(stepsOf(body)).toContain('last_failure');
    expect(body.next).toMatchObject({ what: 'probe', at: later });
    expect(body.advice.map(({ command }: { command: string }) => command)).toContainEqual(
      expect.stringContaining(`/routes/${route.id}/reset-circuit`),
    );
  }
});
