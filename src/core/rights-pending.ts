import { isPosthornError, PosthornError } from './errors.ts';

/**
 * The process has no right on Secrets of a namespace (UNAVAILABLE, not FORBIDDEN): the controller grants it there, so that it may come at any
 * moment. Its message is for clients of the API; the cause has what the API server said.
 */
export class RightsPending extends PosthornError {
  constructor(namespace: string, cause: Error) {
    super('UNAVAILABLE', `The right on Secrets in the namespace ${namespace} is not granted yet; send the request again later.`, { cause });
    this.name = 'RightsPending';
  }
}

/** What the API server says when RBAC refuses, and the policy of the chart while a namespace has lost the label of its organization. */
const refusal = /: User "[^"]*" cannot |is not labelled as that of an organization/;

/** The error of a call for a Secret: RightsPending in place of what says that the caller lacks a right. */
export function withPendingRights(error: unknown, namespace: string): unknown {
  return isPosthornError(error, 'FORBIDDEN') && refusal.test(error.message) ? new RightsPending(namespace, error) : error;
}
