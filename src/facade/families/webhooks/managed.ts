import { isDeepStrictEqual } from 'node:util';
import { PosthornError } from '../../../core/errors.ts';

/** FIELD_MANAGED for what a custom resource keeps, naming it, unless what it shall become is what it is. */
export function refuseManaged<T extends { managedBy: string | null }>(noun: string, current: T, wanted?: T): void {
  const { managedBy } = current;
  if (managedBy === null || isDeepStrictEqual(wanted, current)) return;
  throw new PosthornError('FIELD_MANAGED', `The ${noun} is managed by the custom resource ${managedBy}. Change it there.`);
}
