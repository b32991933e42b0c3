import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { OrganizationBudget } from '../../core/organization-budget.ts';
import { untilGone, type Work } from './open-requests.ts';

/** Memory of a process of the API for bodies that arrive and payloads that are sent. */
export const requestMemoryLimits = {
  bytes: 128 * 1024 * 1024,
  ofOrganization: 32 * 1024 * 1024,
  /** Less takes no room: the number of requests of an organization bounds it. */
  freeBytes: 16 * 1024,
  /** For so long a request waits for its room. */
  waitMs: 10_000,
};

/** What becomes of a payload on its way to the client, as a multiple of its size: as it is stored, as text, as JSON, as it is sent. */
const copies = 4;
/** Memory for a payload that is read whole, of which there is no larger one than 1 MiB. */
export const wholePayloadMemory = copies * 1024 * 1024;

/** Memory for a payload that is sent in pieces as it is stored, of which none is larger. */
export const payloadPieceMemory = 1024 * 1024;

const unit = 64 * 1024;

/** Shares the memory of a process of the API between organizations: a request waits until there is room for what it reads. */
export class RequestMemory {
  readonly #budget: OrganizationBudget;

  constructor(clock: Clock) {
    const { bytes, ofOrganization, waitMs } = requestMemoryLimits;
    this.#budget = new OrganizationBudget({ places: bytes / unit, placesOfOrganization: ofOrganization / unit, clock, waitMs });
  }

  /** Resolves when the organization may hold so many bytes more, which it does until its work is over (`untilGone`). RATE_LIMITED when there is no room in time. */
  async hold(organization: string, bytes: number, work: Work, signal?: AbortSignal): Promise<void> {
    if (bytes <= requestMemoryLimits.freeBytes) return;
    const places = Math.ceil(Math.min(bytes, requestMemoryLimits.ofOrganization) / unit);
    const leave = await this.#budget.enter(organization, places, signal === undefined ? {} : { signal });
    if (leave === null)
      throw new PosthornError(
        'RATE_LIMITED',
        'Too many bytes of bodies and payloads of the organization are under way: send fewer at a time, and read the answers.',
        { retryAfterSeconds: 5 },
      );
    void untilGone(work).then(leave);
  }
}
