import { isDeepStrictEqual } from 'node:util';
import { PosthornError } from '../../../../core/errors.ts';

/** FIELD_MANAGED for what a custom resource keeps, naming it. */
export function refuseManaged(noun: string, { managedBy }: { managedBy: string | null }): void {
  if (managedBy === null) return;
  throw new PosthornError('FIELD_MANAGED', `The ${noun} is managed by the custom resource ${managedBy}. Change it there.`);
}

/** Whether a custom resource keeps it and it has the desired form: it is not written then, as that could undo a later change from Git. Else as `refuseManaged`. */
export function isManagedAsDesired<T extends { managedBy: string | null }>(noun: string, current: T, wanted: T): boolean {
  if (current.managedBy !== null && isDeepStrictEqual(wanted, current)) return true;
  refuseManaged(noun, current);
  return false;
}
