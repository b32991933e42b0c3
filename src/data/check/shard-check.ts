import type { RedisClient } from '../../redis/connection.ts';
import { scanKeys } from '../../redis/scan-keys.ts';
import { redisUnavailable } from '../../redis/unavailable.ts';
import type { MessageLocation } from '../history/message-view.ts';
import { batchMarker } from '../queue/batch-reply.ts';
import { hashFields } from '../shard/hash-fields.ts';
import { packOfResult } from '../shard/packed-results.ts';
import { recordId, recordKey } from '../shard/record-key.ts';
import { fields, list, text } from '../shard/script-reply.ts';
import { shardBase, shardKeys } from '../shard/shard-keys.ts';
import { ShardScript } from '../shard/shard-script.ts';
import { compareFinished } from './finished-check.ts';
import { compareUnfinished } from './unfinished-check.ts';

/** One thing that is not as it must be. `id` is that of a message or an event. */
export interface Finding {
  id: string;
  complaint: string;
}

export interface CheckReport {
  /** Messages that have a record, and those that an outbox still has to have made. */
  messages: number;
  /** Messages that have not ended, and those that an outbox still has to have made. An outbox entry that finds further targets counts as one. */
  unfinished: number;
  findings: Finding[];
}

const unserved = new ShardScript(new URL('./unserved.lua', import.meta.url));

const pageSize = 500;
const asked = 100;
/** A message in transit is elsewhere at the next read. */
const rounds = 3;
const unfinishedLetters = new Set(['p', 'a', 'r']);

/**
 * Proves that every accepted message is in exactly one state: queued, due, held by a worker, expired, under way to another shard, finished
 * or dead letter, that it has its event, that queued messages can be dequeued, and that the unfinished and finished bytes of accounts are those of their events. Reads only, page by page, while the shards work; a transient error is no
 * finding. Throws UNAVAILABLE when Redis does not answer.
 */
export async function checkShards({
  redis,
  prefix,
  shards = 1,
}: {
  redis: RedisClient;
  prefix: string;
  shards?: number;
}): Promise<CheckReport> {
  try {
    let { findings, messages, unfinished } = await look(redis, prefix, shards);
    for (let round = 1; round < rounds && findings.size > 0; round++) {
      const again = await look(redis, prefix, shards);
      const before = findings;
      findings = new Map([...again.findings].filter(([key]) => before.has(key)));
      messages = again.messages;
      unfinished = again.unfinished;
    }
    return { messages, unfinished, findings: [...findings.values()] };
  } catch (error) {
    throw redisUnavailable(error);
  }
}

async function look(redis: RedisClient, prefix: string, shards: number) {
  const findings = new Map<string, Finding>();
  const sum = { messages: 0, unfinished: 0 };
  const moved: MessageLocation[] = [];
  const walks = Array.from({ length: shards }, (_, shard) => new ShardWalk(redis, prefix, shard));
  // Before the records of any shard: what is carried meanwhile is counted twice rather than not at all.
  for (const walk of walks) {
    const toBeMade = await walk.toBeMade();
    sum.messages += toBeMade;
    sum.unfinished += toBeMade;
  }
  for (const [shard, walk] of walks.entries()) {
    const seen = await walk.findings();
    for (const [key, finding] of seen.findings) findings.set(`${shard} ${key}`, finding);
    sum.messages += seen.messages;
    sum.unfinished += seen.unfinished;
    moved.push(...walk.moved);
  }
  for (const { id, shard } of moved) {
    const isThere = await redis.exists(`${shardBase(prefix, shard)}m:${recordKey(id, shard)}`);
    if (isThere === 0) findings.set(`moved ${id}`, { id, complaint: `has moved to shard ${shard} and is not there` });
  }
  return { ...sum, findings };
}

class ShardWalk {
  readonly #redis: RedisClient;
  readonly #prefix: string;
  readonly #base: string;
  readonly #shard: number;
  /** Message → where it was found. */
  readonly #places = new Map<string, string[]>();
  readonly #holders = new Map<string, string>();
  readonly #findings = new Map<string, Finding>();
  /** Possible results of a pack that an archive has one by one, by the pack. */
  readonly #results = new Map<string, string[]>();
  /** Batch → its members. */
  readonly #batches = new Map<string, Set<string>>();
  /** Event → how many of its messages are still to be made. */
  readonly #toBeMade = new Map<string, number>();
  /** Messages that have arrived in other shards, with these. */
  readonly moved: MessageLocation[] = [];

  constructor(redis: RedisClient, prefix: string, shard: number) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#base = shardBase(prefix, shard);
    this.#shard = shard;
  }

  /** How many messages the outbox still has to have made, here or in other shards. */
  async toBeMade(): Promise<number> {
    let count = 0;
    await this.#pages(`${this.#base}out`, (_, flat) => {
      const entry = fields(flat);
      if (entry.get('k') === 'x' || entry.get('k') === 'i') count += linesOf(entry);
      if (entry.get('k') === 'w') count++;
    });
    return count;
  }

  async findings(): Promise<{ findings: Map<string, Finding>; messages: number; unfinished: number }> {
    for (const key of await this.#keys('held:*')) {
      for (const [handle, id] of Object.entries(await this.#redis.hgetall(key))) this.#holders.set(handle, id);
    }
    const lanes = await this.#keys('w:*');
    for (const key of lanes) await this.#walkLane(key);
    await this.#checkTurns(lanes);
    await this.#walkDue();
    for (const id of await this.#redis.lrange(`${this.#base}ended`, 0, -1)) this.#note(id, 'ended');
    for (const key of await this.#keys('b:*')) await this.#walkBatch(key);
    await this.#walkOutbox();
    await this.#walkHistory('fin', 'finished');
    for (const key of await this.#keys('fin:*')) await this.#walkHistory(key.slice(this.#base.length), 'finished');
    await this.#walkHistory('dead', 'dead');
    const figures = await this.#walkMessages();
    for (const [id, places] of this.#places) this.#complain(id, `is ${places.join(' and ')}, but has no record`);
    return { findings: this.#findings, ...figures };
  }

  async #walkLane(key: string): Promise<void> {
    const lane = key.slice(this.#base.length + 2);
    const [group] = (await this.#redis.xinfo('GROUPS', key).catch(() => [])) as unknown[][];
    const read = String(group?.[7] ?? '0-0');
    await this.#pages(key, (entry, [, id = '']) => {
      const holds = this.#holders.get(`${lane}/${entry}`) === id;
      if (holds) this.#note(id, 'held');
      else if (isAfter(entry, read)) this.#note(id, 'queued');
      else this.#note(id, 'read, but held by nobody');
    });
  }

  /** Notes the message that has waited the longest at each target that no worker would serve. */
  async #checkTurns(lanes: readonly string[]): Promise<void> {
    const targets = [...new Set(lanes.map((key) => key.slice(this.#base.length + 2).replace('r', '')))];
    const { declared } = shardKeys(this.#prefix, this.#shard);
    for (let from = 0; from < targets.length; from += asked) {
      for (const found of list(await unserved.run(this.#redis, declared, targets.slice(from, from + asked)))) {
        const [target, message, why] = list(found).map(text);
        const id = recordId('msg_', this.#shard, message ?? '');
        this.#findings.set(`target ${target}`, { id, complaint: `is queued, and no worker will dequeue it: target ${target} ${why}` });
      }
    }
  }

  async #walkBatch(key: string): Promise<void> {
    const text = (await this.#redis.get(key)) ?? '';
    const members = text.slice(text.indexOf('\n') + 1).split(';');
    this.#batches.set(key.slice(this.#base.length + 2), new Set(members.map((member) => member.split(' ')[0] ?? '')));
  }

  async #walkDue(): Promise<void> {
    let cursor = '0';
    do {
      const [next, members] = await this.#redis.zscan(`${this.#base}due`, cursor, 'COUNT', pageSize);
      for (let i = 0; i < members.length; i += 2) this.#note(members[i]?.split(' ')[1] ?? '', 'due');
      cursor = next;
    } while (cursor !== '0');
  }

  async #walkOutbox(): Promise<void> {
    await this.#pages(`${this.#base}out`, (_, flat) => {
      const entry = fields(flat);
      if (entry.get('k') === 'v') this.#note(entry.get('m') ?? '', 'moving');
      const isHere = entry.get('k') === 'i' || (entry.get('k') === 'x' && Number(entry.get('s')) === this.#shard);
      if (isHere) {
        const event = entry.get('b') ?? entry.get('e') ?? '';
        this.#toBeMade.set(event, (this.#toBeMade.get(event) ?? 0) + linesOf(entry));
      }
    });
  }

  async #walkHistory(name: string, place: string): Promise<void> {
    await this.#pages(`${this.#base}${name}`, (_, [kind, id = '']) => {
      if (kind === hashFields.entry.message) this.#note(id, place);
    });
  }

  async #walkMessages(): Promise<{ messages: number; unfinished: number }> {
    let messages = 0;
    let unfinished = 0;
    const ofEvent = new Map<string, string[]>();
    const field = hashFields.message;
    const records = together(await this.#keys('m:*'), async (key) => ({
      key,
      fields: await this.#redis.hmget(key, field.status, field.event, field.shard, field.batch, field.laneEntry),
    }));
    for await (const { key, fields } of records) {
      const id = key.slice(this.#base.length + 2);
      const [status, event, elsewhere, batch, laneEntry] = fields;
      if (status === null || status === undefined) continue;
      if (event === batchMarker) {
        this.#checkPlace(id, status);
        continue;
      }
      if (event !== null && event !== undefined) {
        const others = ofEvent.get(event);
        if (others === undefined) ofEvent.set(event, [id]);
        else others.push(id);
      }
      if (status === 'm' && !this.#places.has(id)) {
        this.moved.push({ id: recordId('msg_', this.#shard, id), shard: Number(elsewhere) });
        continue;
      }
      messages++;
      if (unfinishedLetters.has(status) || status === 'm') unfinished++;
      if (this.#batches.get(batch ?? '')?.has(id) === true) this.#note(id, 'in a batch');
      if (laneEntry === '' && (await this.#redis.zscore(`${this.#base}exp`, id)) !== null) this.#note(id, 'expired');
      this.#checkPlace(id, status);
    }
    for await (const _ of together([...ofEvent], ([event, ids]) => this.#checkEvent(event, ids.length)));
    await this.#compareUnfinished(ofEvent);
    return { messages, unfinished };
  }

  #checkPlace(id: string, status: string): void {
    const results = this.#results.get(id) ?? [];
    const places = this.#places.get(id) ?? results.slice(0, 1).flatMap((result) => this.#places.get(result) ?? []);
    for (const each of [id, ...results]) this.#places.delete(each);
    const expected = expectedPlaces(status);
    if (places.length === 0) this.#complain(id, `has status ${status} and is nowhere`);
    else if (places.length > 1) this.#complain(id, `is ${places.join(' and ')}`);
    else if (!expected.includes(places[0] ?? '')) this.#complain(id, `has status ${status} and is ${places[0]}`);
  }

  async #checkEvent(event: string, messages: number): Promise<void> {
    const id = recordId('evt_', this.#shard, event);
    const [exists, references] = await Promise.all([
      this.#redis.exists(`${this.#base}e:${event}`),
      this.#redis.hget(`${this.#base}refs`, event),
    ]);
    if (exists === 0) this.#findings.set(id, { id, complaint: 'is gone, but has messages' });
    else if (Number(references ?? '1') !== messages + (this.#toBeMade.get(event) ?? 0))
      this.#findings.set(id, { id, complaint: `counts ${references} messages and has ${messages}` });
  }

  async #compareUnfinished(messages: ReadonlyMap<string, readonly string[]>): Promise<void> {
    for (const wrong of await compareUnfinished({ redis: this.#redis, prefix: this.#prefix, shard: this.#shard }, messages, 'check')) {
      const id = 'event' in wrong ? recordId('evt_', this.#shard, wrong.event) : wrong.account;
      this.#findings.set(`unfinished ${id}`, { id, complaint: wrong.complaint });
    }
    for (const wrong of await compareFinished({ redis: this.#redis, prefix: this.#prefix, shard: this.#shard }, 'check')) {
      this.#findings.set(`finished ${wrong.account}`, { id: wrong.account, complaint: wrong.complaint });
    }
  }

  #note(id: string, place: string): void {
    const places = this.#places.get(id);
    if (places !== undefined) {
      places.push(place);
      return;
    }
    this.#places.set(id, [place]);
    const pack = packOfResult(id);
    if (pack === null) return;
    const results = this.#results.get(pack);
    if (results === undefined) this.#results.set(pack, [id]);
    else results.push(id);
  }

  #complain(key: string, complaint: string): void {
    const id = recordId('msg_', this.#shard, key);
    this.#findings.set(id, { id, complaint });
  }

  #keys(pattern: string): Promise<string[]> {
    return scanKeys(this.#redis, this.#base, pattern);
  }

  async #pages(key: string, visit: (entry: string, fields: string[]) => void): Promise<void> {
    for (let from = '-'; ; ) {
      const entries = await this.#redis.xrange(key, from, '+', 'COUNT', pageSize);
      for (const [entry, fields] of entries) visit(entry, fields);
      const last = entries.at(-1);
      if (last === undefined || entries.length < pageSize) return;
      from = `(${last[0]}`;
    }
  }
}

/** The reads for each of these, in order; so many at a time that a round trip counts for little. */
async function* together<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): AsyncGenerator<R> {
  for (let from = 0; from < items.length; from += asked) yield* await Promise.all(items.slice(from, from + asked).map(ask));
}

function expectedPlaces(status: string): string[] {
  if (unfinishedLetters.has(status)) return ['queued', 'held', 'due', 'in a batch', 'expired'];
  if (status === 'e') return ['ended'];
  if (status === 'm') return ['moving'];
  return [status === 'q' ? 'dead' : 'finished'];
}

/** How many messages an outbox entry of the kind x or i is for. */
function linesOf(entry: ReadonlyMap<string, string>): number {
  return (entry.get('t') ?? '').split('\n').length;
}

/** Entry ids are `<number>-<number>`. */
function isAfter(entry: string, other: string): boolean {
  const [a = 0, b = 0] = entry.split('-').map(Number);
  const [c = 0, d = 0] = other.split('-').map(Number);
  return a > c || (a === c && b > d);
}
