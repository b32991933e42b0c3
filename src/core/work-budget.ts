/** Ends an evaluation of a user's whose work would take too long. */
export class WorkExceededError extends Error {}

/** Remaining work of one evaluation, by the known costs of its parts. Time is not measured: a value gets the same result everywhere. */
export class WorkBudget {
  #leftNs: number;
  readonly #complaint: string;

  /** `complaint`: the message of the error. */
  constructor(limitNs: number, complaint: string) {
    this.#leftNs = limitNs;
    this.#complaint = complaint;
  }

  /** To be called before the work is done. Throws WorkExceededError. */
  spend(ns: number): void {
    this.#leftNs -= ns;
    if (this.#leftNs < 0) throw new WorkExceededError(this.#complaint);
  }
}
