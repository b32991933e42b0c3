import type { Clock } from '../../../core/clock.ts';

const waitMs = 10_000;

/**
 * How many batches a worker has in one stage at a time, or large payloads: each takes memory. One organization has a share of the places only, so that
 * a store that hangs, or transforms without end, leave room for others.
 */
export class BatchRoom {
  readonly #places: number;
  readonly #placesOfOrganization: number;
  readonly #clock: Clock;
  readonly #used = new Map<string, number>();
  readonly #waiting: { org: string; places: number; enter: (hasEntered: boolean) => void }[] = [];
  #total = 0;

  constructor({ places, placesOfOrganization, clock }: { places: number; placesOfOrganization: number; clock: Clock }) {
    this.#places = places;
    this.#placesOfOrganization = placesOfOrganization;
    this.#clock = clock;
  }

  /** Answers what gives the places back; null when they did not become free within 10 s. At most as many as an organization may have. */
  async enter(org: string, places = 1): Promise<(() => void) | null> {
    if (!this.#take(org, places) && !(await this.#wait(org, places))) return null;
    return () => this.#leave(org, places);
  }

  #take(org: string, places: number): boolean {
    const own = this.#used.get(org) ?? 0;
    if (this.#total + places > this.#places || own + places > this.#placesOfOrganization) return false;
    this.#total += places;
    this.#used.set(org, own + places);
    return true;
  }

  #wait(org: string, places: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(waitMs, () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        resolve(false);
      });
      const waiter = {
        org,
        places,
        enter: () => {
          cancel();
          resolve(true);
        },
      };
      this.#waiting.push(waiter);
    });
  }

  #leave(org: string, places: number): void {
    this.#total -= places;
    const own = (this.#used.get(org) ?? places) - places;
    if (own === 0) this.#used.delete(org);
    else this.#used.set(org, own);
    for (;;) {
      const next = this.#waiting.findIndex((waiter) => this.#take(waiter.org, waiter.places));
      if (next < 0) return;
      this.#waiting.splice(next, 1)[0]?.enter(true);
    }
  }
}
