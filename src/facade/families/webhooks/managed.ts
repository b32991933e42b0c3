import { PosthornError } from '../../../core/errors.ts';

/** FIELD_MANAGED for what a custom resource keeps, naming it. */
export function refuseManaged(noun: string, { managedBy }: { managedBy: string | null }): void {
  if (managedBy === null) return;
  throw new PosthornError('FIELD_MANAGED', `The ${noun} is managed by the custom resource ${managedBy}. Change it there.`);
}

/** What the reason of something disabled becomes: it goes when that is enabled again. */
export function disablingOf(sent: { isDisabled?: boolean | undefined; disabledReason?: string | null | undefined }): {
  isDisabled?: boolean;
  disabledReason?: string | null;
} {
  const { isDisabled, disabledReason } = sent;
  return {
    ...(isDisabled !== undefined && { isDisabled }),
    ...(isDisabled === false ? { disabledReason: null } : disabledReason !== undefined && { disabledReason }),
  };
}
