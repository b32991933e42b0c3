import { PosthornError } from '../../core/errors.ts';
import { OpenShares } from '../../core/open-shares.ts';
import type { Caller } from './caller.ts';
import type { Exchange } from './exchange.ts';
import type { Operation } from './operation.ts';

/** Requests of one organization that a process of the API has under way at a time. One credential has three quarters of them while it is alone. */
export const openRequestLimits = {
  all: 1333,
  /** Requests that read lists, analytics, exports and explanations, or cancel by filter: each may scan many records, or stream for minutes. */
  scans: 85,
};

/** Shares the capacity of the API between organizations, and that of an organization between its credentials: see `takeShare`. */
export class OpenRequests {
  readonly #all = new OpenShares({ ofOwner: openRequestLimits.all });
  readonly #scans = new OpenShares({ ofOwner: openRequestLimits.scans });

  /** RATE_LIMITED when the organization has too many. */
  enter(caller: Caller, exchange: Work): void {
    takeShare(this.#all, ownerOf(caller), exchange, 'requests');
  }

  /** Takes a slot of the share for operations that scan; does nothing for other operations. */
  enterScan(
    caller: Caller,
    { method, path, answer, isScan }: Pick<Operation, 'method' | 'path' | 'answer' | 'isScan'>,
    exchange: Work,
  ): void {
    // Live streams have shares of their own.
    const isList = method === 'GET' && !path.endsWith('}');
    if ((isScan === true || isList) && answer.events === undefined)
      takeShare(this.#scans, ownerOf(caller), exchange, 'requests for lists, analytics, exports, explanations or cancels of many');
  }
}

/** Owner of the share. */
export interface ShareOwner {
  organization: string;
  /** The credential that the request counts to; null: it is not counted. */
  credential: string | null;
}

export function ownerOf({ organization, credential }: Caller): { organization: string; credential: string } {
  return { organization: organization.id, credential: credential.id };
}

export type Work = Pick<Exchange, 'response' | 'ended'>;

/** Calls `then` when the answer has been sent, or the client has gone, and the work has ended. */
export function whenFinished({ response, ended }: Work, then: () => void): void {
  let left = response.closed ? 1 : 2;
  const end = (): void => {
    left--;
    if (left === 0) then();
  };
  if (!response.closed) response.once('close', end);
  void ended.then(end);
}

/**
 * Holds a slot until the work is over (`whenFinished`), also when the client hangs up earlier. Throws RATE_LIMITED when the
 * organization has too many, or the credential of what is left.
 */
export function takeShare(shares: OpenShares, { organization, credential }: ShareOwner, work: Work, what: string): void {
  if (!shares.take(organization, 1, credential))
    throw new PosthornError('RATE_LIMITED', `Too many ${what} of the organization are under way: send fewer at a time.`, {
      retryAfterSeconds: 1,
    });
  whenFinished(work, () => shares.giveBack(organization, 1, credential));
}
