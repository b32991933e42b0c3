import { randomUUID } from 'node:crypto';
import { canonicalJson } from '../../core/canonical-json.ts';
import { isPosthornError, PosthornError } from '../../core/errors.ts';
import type { RecordByKind, RecordKind } from '../../core/records.ts';
import type { RedisClient } from '../../redis/connection.ts';
import { namedArgument, Script, type ScriptArgument } from '../../redis/script.ts';
import { throwUnavailable } from '../../redis/unavailable.ts';
import { epochIsOver } from './leader-epoch.ts';
import type { RegistryPublisher } from './registry.ts';
import { type IndexEntry, type IndexOperation, indexEntries, indexOperations, type KindAndRecord } from './registry-index.ts';
import { type RegistryKeys, registryFields, registryKeys } from './registry-keys.ts';
import { parseRecord } from './registry-record.ts';
import { storeLayout } from './store-layout.ts';

const mintEpochScript = new Script(new URL('./registry-mint-epoch.lua', import.meta.url));
const publishScript = new Script(new URL('./registry-publish.lua', import.meta.url), registryFields);
const retractScript = new Script(new URL('./registry-retract.lua', import.meta.url), registryFields);
const claimScript = new Script(new URL('./registry-claim.lua', import.meta.url));

const changesKept = 10_000;
/** A belief about the stored record can only be wrong again when the same record is being written elsewhere. */
const triesMax = 5;

/** A record of a kind that replaces the stored one in Redis. */
interface Replacement {
  epoch: number;
  kind: RecordKind;
  id: string;
  /** Canonical JSON; empty: no record. */
  wanted: string;
  /** Only a record of this organization is replaced; undefined: any. */
  org: string | undefined;
}

/** The leader's side of the registry. Every method throws UNAVAILABLE when Redis does not answer; all may be repeated. */
export class RedisRegistryPublisher implements RegistryPublisher {
  readonly #redis: RedisClient;
  readonly #keys: RegistryKeys;

  constructor(redis: RedisClient, prefix: string) {
    this.#redis = redis;
    this.#keys = registryKeys(prefix);
  }

  async mintEpoch(): Promise<number> {
    return Number(await this.#run(mintEpochScript, [this.#keys.epoch, this.#keys.marker, this.#keys.layout], [randomUUID(), storeLayout]));
  }

  publish<K extends RecordKind>(epoch: number, kind: K, record: RecordByKind[K]): Promise<boolean> {
    const org = 'org' in record ? record.org : undefined;
    // Most records are new or equal, so the first belief is that there is none.
    return this.#replace(publishScript, { epoch, kind, id: record.id, wanted: canonicalJson(record), org }, '');
  }

  async retract(epoch: number, kind: RecordKind, id: string, org?: string): Promise<boolean> {
    return await this.#replace(retractScript, { epoch, kind, id, wanted: '', org }, await this.#stored(kind, id));
  }

  async claim(epoch: number, id: string, org: string): Promise<void> {
    const reply = await this.#run(claimScript, [this.#keys.epoch, this.#keys.owners], [epoch, id, org]);
    const [outcome, detail = ''] = Array.isArray(reply) ? reply.map(String) : [];
    if (outcome === 'fenced') throw epochIsOver(epoch, detail);
    if (outcome === 'owned') throw idIsOwned(id, detail);
  }

  async eachOwner(found: (id: string, org: string) => void): Promise<void> {
    let cursor = '0';
    do {
      const [next, pairs] = await this.#redis.hscan(this.#keys.owners, cursor, 'COUNT', 1000).catch(throwUnavailable);
      for (let i = 0; i + 1 < pairs.length; i += 2) found(pairs[i] ?? '', pairs[i + 1] ?? '');
      cursor = next;
    } while (cursor !== '0');
  }

  async ids(kind: RecordKind): Promise<string[]> {
    return await this.#redis.hkeys(this.#keys.records(kind)).catch(throwUnavailable);
  }

  async get<K extends RecordKind>(kind: K, id: string): Promise<RecordByKind[K] | null> {
    const json = await this.#stored(kind, id);
    return json === '' ? null : parseRecord(kind, json);
  }

  async marker(): Promise<string> {
    const made = randomUUID();
    const before = await this.#redis.set(this.#keys.marker, made, 'NX', 'GET').catch(throwUnavailable);
    return before ?? made;
  }

  async markComplete(): Promise<void> {
    await this.#redis.set(this.#keys.complete, '1').catch(throwUnavailable);
  }

  async #stored(kind: RecordKind, id: string): Promise<string> {
    return (await this.#redis.hget(this.#keys.records(kind), id).catch(throwUnavailable)) ?? '';
  }

  /**
   * The script compares and sets: which index entries go is worked out here from the record that is believed to be stored, and
   * a wrong belief is corrected in the reply.
   */
  async #replace(script: Script, replacement: Replacement, firstBelief: string): Promise<boolean> {
    const { epoch, kind, id, wanted } = replacement;
    const wantedEntries = entriesOf(kind, wanted);
    let believed = firstBelief;
    for (let tries = 0; tries < triesMax; tries++) {
      if (wanted === '' && isOfAnother(kind, believed, replacement.org)) return false;
      const operations = indexOperations(entriesOf(kind, believed), wantedEntries);
      const [outcome, detail] = await this.#change(script, replacement, believed, operations);
      switch (outcome) {
        case 'changed':
          return true;
        case 'equal':
          return false;
        case 'stored':
          believed = detail;
          break;
        case 'owned':
          throw idIsOwned(id, detail);
        case 'taken':
          throw nameIsTaken(kind, id);
        case 'fenced':
          throw epochIsOver(epoch, detail);
        default:
          throw new PosthornError('INTERNAL', `a registry script answered ${outcome}`);
      }
    }
    throw new PosthornError('CONFLICT', `the record ${kind} ${id} is being written by another process`);
  }

  async #change(
    script: Script,
    { epoch, kind, id, wanted, org }: Replacement,
    believed: string,
    operations: IndexOperation[],
  ): Promise<[outcome: string, detail: string]> {
    const { marker, epoch: epochKey, sequence, changes, records, owners, index } = this.#keys;
    const keys = [marker, epochKey, sequence, changes, records(kind), owners, ...operations.map(({ entry }) => index(entry.index))];
    const change = namedArgument({
      epoch: String(epoch),
      marker: randomUUID(),
      maxChanges: changesKept,
      id,
      org: wanted === '' ? null : org,
      operations: operations.map(({ operation, entry }) => [operation, entry.field]),
      changeKeys: [`${kind}:${id}`, ...operations.map(({ entry }) => entry.changeKey)],
    });
    const reply = await this.#run(script, keys, [change, believed, wanted]);
    const [outcome, detail = ''] = Array.isArray(reply) ? reply.map(String) : [];
    return [outcome ?? 'nothing', detail];
  }

  async #run(script: Script, keys: string[], args: ScriptArgument[]): Promise<unknown> {
    return await script.run(this.#redis, keys, args).catch(throwUnavailable);
  }
}

/** Recognized by `ownerOfRefusedId`. */
export function idIsOwned(id: string, owner: string): PosthornError {
  return new PosthornError('CONFLICT', `the id ${id} belongs to another organization`, { details: { owner: [owner] } });
}

/** Recognized by `isTakenName`. */
export function nameIsTaken(kind: RecordKind, id: string): PosthornError {
  const complaint = 'another organization has it';
  return new PosthornError('CONFLICT', `what ${kind} ${id} is found by belongs to another organization`, {
    details: { taken: [complaint] },
  });
}

/** Whether a publication was refused because another organization has what the record is found by. */
export function isTakenName(error: unknown): boolean {
  return isPosthornError(error, 'CONFLICT') && error.details?.['taken'] !== undefined;
}

function isOfAnother(kind: RecordKind, json: string, org: string | undefined): boolean {
  if (json === '' || org === undefined) return false;
  const record = parseRecord(kind, json);
  return 'org' in record && record.org !== org;
}

function entriesOf(kind: RecordKind, json: string): IndexEntry[] {
  // The compiler cannot tie a generic kind to its record.
  return json === '' ? [] : indexEntries({ kind, record: parseRecord(kind, json) } as KindAndRecord);
}
