import type { Clock } from '../../core/clock.ts';
import { PosthornError } from '../../core/errors.ts';
import { OrganizationBudget } from '../../core/organization-budget.ts';
import { type ShareOwner, type Work, whenFinished } from './open-requests.ts';

/** Memory of a process of the API for bodies that arrive and payloads that are sent. */
export const requestMemoryLimits = {
  bytes: 128 * 1024 * 1024,
  ofOrganization: 43 * 1024 * 1024,
  /** Maximum of one credential while no other is active. */
  ofCredential: 32 * 1024 * 1024,
  /** Less needs no reservation: requests per organization are bounded. */
  freeBytes: 16 * 1024,
  /** Maximum wait of a request for its memory. */
  waitMs: 10_000,
};

/** Memory of a payload on its way to the client, as a multiple of its size: as it is stored, as text, as JSON, as it is sent. */
const copies = 4;
/** Memory for a payload that is read whole; the maximum size is 1 MiB. */
export const fullPayloadMemory = copies * 1024 * 1024;

/** Memory for a payload that is sent in stored chunks; the maximum chunk. */
export const payloadPieceMemory = 1024 * 1024;

const unit = 64 * 1024;

/** Shares the memory of an API process between organizations, and that of each between its credentials: a request waits until its reads fit. */
export class RequestMemory {
  readonly #budget: OrganizationBudget;

  constructor(clock: Clock) {
    const { bytes, ofOrganization, ofCredential, waitMs } = requestMemoryLimits;
    this.#budget = new OrganizationBudget({
      places: bytes / unit,
      placesOfOrganization: ofOrganization / unit,
      placesOfSource: ofCredential / unit,
      clock,
      waitMs,
    });
  }

  /** Resolves when the owner may hold so many bytes more; they are released with its work (`whenFinished`). RATE_LIMITED on timeout. */
  async hold({ organization, credential }: ShareOwner, bytes: number, work: Work, signal?: AbortSignal): Promise<void> {
    if (bytes <= requestMemoryLimits.freeBytes) return;
    const places = Math.ceil(Math.min(bytes, requestMemoryLimits.ofCredential) / unit);
    const leave = await this.#budget.enter(organization, places, { source: credential, ...(signal !== undefined && { signal }) });
    if (leave === null)
      throw new PosthornError(
        'RATE_LIMITED',
        'Too many bytes of bodies and payloads of the organization are under way: send fewer at a time, and read the answers.',
        { retryAfterSeconds: 5 },
      );
    whenFinished(work, leave);
  }
}
