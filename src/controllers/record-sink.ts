import type { Refusal } from '../compile/compiled.ts';
import type { OrganizationFacts } from '../compile/organization.ts';
import type { RecordByKind, RecordKind } from '../core/records.ts';
import { isTakenName } from '../data/registry/registry-publisher.ts';
import type { FencedPublisher } from './fenced-publisher.ts';
import { ownerOfRefusedId } from './id-owners.ts';

/** A conflict with data of others; retried: they may remove it. */
export type RecordConflict = { refusal: Refusal; unresolved?: undefined } | { refusal?: undefined; unresolved: Refusal };

/** Publishes the records of a kind, in their form. */
export interface RecordSink<Record, Stored = Record> {
  get(id: string, organization: OrganizationFacts): Promise<Stored | null>;
  /** Returns the conflict that prevents publication; null when the record is published. */
  publish(record: Record): Promise<RecordConflict | null>;
  /** `namespace`: where its object was. Succeeds if absent. */
  retract(id: string, namespace: string): Promise<void>;
  /** Published records stay but are disabled; `reason`: why, if the record stores it. */
  disable(stored: Stored, reason: string | null): Promise<void>;
  /** For which generation of its object it was published, where that is known. */
  generationOf(stored: Stored): number | null;
}

/** The refusal of an object that requests the id of another organization. */
export const idOfAnother: Refusal = {
  reason: 'IdTaken',
  message:
    'the id that the annotation posthorn.dev/id requests belongs to another organization, which keeps it after its object is deleted; ' +
    'to restore an organization with its objects, first set the same annotation of the Organization to its former id',
};

/** Takes the id for the record's organization. Returns the obstacle when another organization has it. */
export async function claimId(
  publisher: Pick<FencedPublisher, 'claim'>,
  { id, org }: { id: string; org: string },
): Promise<RecordConflict | null> {
  try {
    await publisher.claim(id, org);
    return null;
  } catch (error) {
    if (ownerOfRefusedId(error) !== undefined) return { refusal: idOfAnother };
    throw error;
  }
}

const keyTaken: Refusal = {
  reason: 'KeyTaken',
  message: 'an API key of another organization has the same spec.sha256; create another key',
};

/** The registry. */
export function registrySink<R extends RecordKind>(publisher: FencedPublisher, kind: R): RecordSink<RecordByKind[R]> {
  return {
    get: (id) => publisher.get(kind, id),
    publish: async (record) => {
      try {
        await publisher.publish(kind, record);
        return null;
      } catch (error) {
        if (ownerOfRefusedId(error) !== undefined) return { refusal: idOfAnother };
        if (isTakenName(error)) return { refusal: keyTaken };
        throw error;
      }
    },
    retract: async (id) => {
      await publisher.retract(kind, id);
    },
    disable: async (stored) => {
      if ('enabled' in stored && stored.enabled) await publisher.publish(kind, { ...stored, enabled: false });
    },
    generationOf: ({ generation }) => generation,
  };
}
