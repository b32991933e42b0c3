import { isPosthornError, PosthornError } from './errors.ts';

/**
 * The process has no right in the namespace of an organization (UNAVAILABLE, not FORBIDDEN): the controller grants it there, so that it may come at any
 * moment. Its message is for clients of the API; the cause has the error of the API server.
 */
export class RightsPending extends PosthornError {
  constructor(namespace: string, cause: Error, resource: 'Secrets' | 'Events' = 'Secrets') {
    super('UNAVAILABLE', `The right on ${resource} in the namespace ${namespace} is not granted yet; send the request again later.`, {
      cause,
    });
    this.name = 'RightsPending';
  }
}

/** The message of the API server when RBAC refuses, and of the chart's policy while a namespace has lost the label of its organization. */
const refusal = /: User "[^"]*" cannot |is not labelled as that of an organization/;

/** The error of a call for a Secret or for Events: RightsPending replaces the error for a missing right. */
export function withPendingRights(error: unknown, namespace: string, resource: 'Secrets' | 'Events' = 'Secrets'): unknown {
  return isPosthornError(error, 'FORBIDDEN') && refusal.test(error.message) ? new RightsPending(namespace, error, resource) : error;
}
