import type { ServerResponse } from 'node:http';
import { PosthornError } from '../../core/errors.ts';
import { OpenShares } from '../../core/open-shares.ts';
import type { Caller } from './caller.ts';
import type { Operation } from './operation.ts';

/** Requests of one organization that a process of the API has under way at a time. */
export const openRequestLimits = {
  all: 1000,
  /** Of those that read lists, analytics, exports and explanations, or cancel by filter: each may scan many records, or stream for minutes. */
  scans: 64,
};

/** Shares the places of the API between organizations: each place is taken until the answer has ended, or the client has gone. */
export class OpenRequests {
  readonly #all = new OpenShares(openRequestLimits.all);
  readonly #scans = new OpenShares(openRequestLimits.scans);

  /** RATE_LIMITED when the organization has too many. */
  enter({ organization }: Caller, response: ServerResponse): void {
    takeShare(this.#all, organization.id, response, 'requests');
  }

  /** The same for an operation that scans; does nothing for another one. */
  enterScan(
    { organization }: Caller,
    { method, path, answer, isScan }: Pick<Operation, 'method' | 'path' | 'answer' | 'isScan'>,
    response: ServerResponse,
  ): void {
    // Live streams have shares of their own.
    const isList = method === 'GET' && !path.endsWith('}');
    if ((isScan === true || isList) && answer.events === undefined)
      takeShare(this.#scans, organization.id, response, 'requests for lists, analytics, exports, explanations or cancels of many');
  }
}

/** Takes a place until the answer has ended, or the client has gone. RATE_LIMITED when the organization has too many. */
export function takeShare(shares: OpenShares, organization: string, response: ServerResponse, what: string): void {
  if (!shares.take(organization))
    throw new PosthornError('RATE_LIMITED', `Too many ${what} of the organization are under way: send fewer at a time.`, {
      retryAfterSeconds: 1,
    });
  const giveBack = (): void => shares.giveBack(organization);
  if (response.closed) giveBack();
  else response.once('close', giveBack);
}
