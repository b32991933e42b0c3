import type { Clock } from '../../../core/clock.ts';

const waitMs = 10_000;

/**
 * How many batches a worker has in one stage at a time: each takes memory. One organization has a share of the places only, so that a store
 * that hangs, or transforms without end, leave room for others.
 */
export class BatchRoom {
  readonly #places: number;
  readonly #placesOfOrganization: number;
  readonly #clock: Clock;
  readonly #used = new Map<string, number>();
  readonly #waiting: { org: string; enter: (hasEntered: boolean) => void }[] = [];
  #total = 0;

  constructor({ places, placesOfOrganization, clock }: { places: number; placesOfOrganization: number; clock: Clock }) {
    this.#places = places;
    this.#placesOfOrganization = placesOfOrganization;
    this.#clock = clock;
  }

  /** Answers what gives the place back; null when none became free within 10 s. */
  async enter(org: string): Promise<(() => void) | null> {
    if (!this.#take(org) && !(await this.#wait(org))) return null;
    return () => this.#leave(org);
  }

  #take(org: string): boolean {
    const own = this.#used.get(org) ?? 0;
    if (this.#total >= this.#places || own >= this.#placesOfOrganization) return false;
    this.#total++;
    this.#used.set(org, own + 1);
    return true;
  }

  #wait(org: string): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(waitMs, () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        resolve(false);
      });
      const waiter = {
        org,
        enter: () => {
          cancel();
          resolve(true);
        },
      };
      this.#waiting.push(waiter);
    });
  }

  #leave(org: string): void {
    this.#total--;
    const own = (this.#used.get(org) ?? 1) - 1;
    if (own === 0) this.#used.delete(org);
    else this.#used.set(org, own);
    const next = this.#waiting.findIndex((waiter) => this.#take(waiter.org));
    if (next >= 0) this.#waiting.splice(next, 1)[0]?.enter(true);
  }
}
