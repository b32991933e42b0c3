import type { CircuitState } from '../../core/circuit.ts';
import { PosthornError } from '../../core/errors.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, type Script } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { decodeAttempt } from '../shard/attempt-record.ts';
import type { AttemptView } from '../shard/messages.ts';
import { integer, list, text } from '../shard/script-reply.ts';
import { shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';

const circuitsScript = new ShardScript(new URL('./circuits.lua', import.meta.url));
const resetScript = new ShardScript(new URL('./circuit-reset.lua', import.meta.url));

/** Most steps of a walk over the circuits that are not closed, of all organizations; a step takes about 500. */
const maxSteps = 10;

/** The circuit of one target as stored in Redis. Times are milliseconds since the epoch. */
export interface CircuitView {
  org: string;
  routeId: string;
  destinationId: string;
  state: CircuitState;
  consecutiveFailures: number;
  probeSuccesses: number;
  sinceMs: number | null;
  /** When the outage began; null while closed. */
  openedAtMs: number | null;
  lastFailureAtMs: number | null;
  lastSuccessAtMs: number | null;
  /** Null unless open: when it lets probes through. */
  cooldownEndsAtMs: number | null;
  /** Newest failed attempt, while it is stored, of a circuit that is not closed and is read by name. */
  lastFailure: Pick<AttemptView, 'responseStatus' | 'errorType'> | null;
}

/** Whether the circuit is open and lets no probe through yet. `circuit` null: the target has had no message. */
export function isCoolingDown(circuit: Pick<CircuitView, 'state' | 'cooldownEndsAtMs'> | null, nowMs: number): boolean {
  return circuit?.state === 'open' && (circuit.cooldownEndsAtMs ?? 0) > nowMs;
}

export interface CircuitTransition {
  routeId: string;
  destinationId: string;
  state: CircuitState;
  atMs: number;
  consecutiveFailures: number;
}

/** The circuits of all targets. Throws UNAVAILABLE when Redis does not answer. */
export class Circuits {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #shards: () => number;

  /** `shards`: how many there are. */
  constructor({ redis, prefix, shards = () => 1 }: { redis: RedisClient; prefix: string; shards?: () => number }) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#shards = shards;
  }

  /** Circuits of a route's destinations; one that has had no message yet has none. */
  async ofRoute(org: string, routeId: string, destinationIds: readonly string[]): Promise<CircuitView[]> {
    return await this.ofTargets(
      org,
      destinationIds.map((destinationId) => ({ routeId, destinationId })),
    );
  }

  /** Returns the circuits of these targets. */
  async ofTargets(org: string, targets: readonly { routeId: string; destinationId: string }[]): Promise<CircuitView[]> {
    if (targets.length === 0) return [];
    const named = targets.map(({ routeId, destinationId }) => ({ route: routeId, destination: destinationId }));
    const replies = await this.#inAll((shard) => this.#run(shard, circuitsScript, { org, targets: named }));
    return replies.flatMap((reply) => list(list(reply)[1]).map(circuitView));
  }

  /** Circuit of one target in the only shard that its messages are in; null: it has had none yet. */
  async ofTarget(
    shard: number,
    org: string,
    { routeId, destinationId }: { routeId: string; destinationId: string },
  ): Promise<CircuitView | null> {
    const reply = await this.#run(shard, circuitsScript, { org, targets: [{ route: routeId, destination: destinationId }] });
    return list(list(reply)[1]).map(circuitView)[0] ?? null;
  }

  /** Every circuit that is not closed. */
  async broken(): Promise<CircuitView[]> {
    return (await this.#inAll((shard) => this.#brokenIn(shard))).flat();
  }

  /** Where those of an organization are that are not closed, by destination; null: at more than `most` destinations, or among too many of others. */
  async brokenOf(org: string, most: number): Promise<{ shard: number; destinationId: string }[] | null> {
    const found = await this.#inAll(async (shard) => {
      const ids = new Set<string>();
      let cursor = '0';
      for (let step = 0; step < maxSteps; step++) {
        const [next, views] = list(await this.#run(shard, circuitsScript, { cursor, org }));
        for (const { destinationId } of list(views).map(circuitView)) ids.add(destinationId);
        cursor = text(next);
        if (cursor === '0') return [...ids].map((destinationId) => ({ shard, destinationId }));
      }
      return null;
    });
    const known = found.filter((each) => each !== null).flat();
    return found.includes(null) || known.length > most ? null : known;
  }

  /** Closes the circuits of a route. */
  async reset(org: string, routeId: string, destinationIds: readonly string[]): Promise<void> {
    await this.#inAll((shard) => this.#run(shard, resetScript, { org, route: routeId, destinations: destinationIds }));
  }

  async #brokenIn(shard: number): Promise<CircuitView[]> {
    // A set that changes while it is scanned may give a member twice.
    const views = new Map<string, CircuitView>();
    let cursor = '0';
    do {
      const [next, found] = list(await this.#run(shard, circuitsScript, { cursor }));
      for (const view of list(found).map(circuitView)) views.set(`${view.routeId} ${view.destinationId}`, view);
      cursor = text(next);
    } while (cursor !== '0');
    return [...views.values()];
  }

  async #inAll<T>(ask: (shard: number) => Promise<T>): Promise<T[]> {
    return await Promise.all(Array.from({ length: this.#shards() }, (_, shard) => ask(shard)));
  }

  async #run(shard: number, what: Script, values: Readonly<Record<string, unknown>>): Promise<unknown> {
    return await what.run(this.#redis, shardKeys(this.#prefix, shard).declared, [namedArgument(values)]).catch(throwUnavailable);
  }
}

const states: ReadonlyMap<string, CircuitState> = new Map([
  ['', 'closed'],
  ['c', 'closed'],
  ['o', 'open'],
  ['h', 'half_open'],
]);

export function circuitStateOf(letter: string): CircuitState {
  const state = states.get(letter);
  if (state === undefined) throw new PosthornError('INTERNAL', `there is no circuit state ${letter}`);
  return state;
}

function circuitView(reply: unknown): CircuitView {
  const [
    org = '',
    routeId = '',
    destinationId = '',
    state = '',
    failures = '',
    probes = '',
    since = '',
    opened = '',
    failed = '',
    succeeded = '',
    cooldownEnds = '',
    failure = '',
  ] = list(reply).map(text);
  return {
    org,
    routeId,
    destinationId,
    state: circuitStateOf(state),
    consecutiveFailures: failures === '' ? 0 : integer(failures),
    probeSuccesses: probes === '' ? 0 : integer(probes),
    sinceMs: msOrNull(since),
    openedAtMs: msOrNull(opened),
    lastFailureAtMs: msOrNull(failed),
    lastSuccessAtMs: msOrNull(succeeded),
    cooldownEndsAtMs: msOrNull(cooldownEnds),
    lastFailure: decodeAttempt(0, failure),
  };
}

function msOrNull(value: string): number | null {
  return value === '' ? null : integer(value);
}
