import { isPosthornError } from '../core/errors.ts';

/**
 * Which organization owns each id, as the registry has it: read once by a leader, and updated by each of its publications. An id stays its
 * organization's after the object is deleted.
 */
export class IdOwners {
  readonly #owners = new Map<string, string>();

  /** Returns the id of the organization; undefined while the id has no owner. */
  ownerOf(id: string): string | undefined {
    return this.#owners.get(id);
  }

  note(id: string, org: string): void {
    this.#owners.set(id, org);
  }
}

/** Returns the organization to which an id belongs, from the error of a publication that was refused for it; undefined: another error. */
export function ownerOfRefusedId(error: unknown): string | undefined {
  return isPosthornError(error, 'CONFLICT') ? error.details?.['owner']?.[0] : undefined;
}
