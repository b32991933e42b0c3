/** One thing that must work before the process takes part. */
export interface ReadinessCheck {
  ok: boolean;
  /** For people: what is missing, or what is known. */
  detail?: string | undefined;
}

/** The state of `/readyz`. A name that is not set to ok makes the process not ready; `note` never does. */
export class Readiness {
  readonly #checks = new Map<string, ReadinessCheck>();
  readonly #notes = new Map<string, () => string | undefined>();
  readonly #becameReady = Promise.withResolvers<void>();
  #missing: string | null = null;
  #onChange: (missing: string | null) => void = () => {};

  /** `names` are not ok until they are set. */
  constructor(names: readonly string[]) {
    for (const name of names) this.#checks.set(name, { ok: false, detail: 'starting' });
    this.#missing = this.missing;
  }

  set(name: string, check: ReadinessCheck): void {
    this.#checks.set(name, check);
    if (this.ready) this.#becameReady.resolve();
    const { missing } = this;
    if (missing === this.#missing) return;
    this.#missing = missing;
    this.#onChange(missing);
  }

  /** Reports from now on each change of `missing`. */
  subscribe(onChange: (missing: string | null) => void): void {
    this.#onChange = onChange;
  }

  /** Resolves when everything works for the first time. */
  get becameReady(): Promise<void> {
    return this.#becameReady.promise;
  }

  /** Something to show that does not decide, such as whether this controller leads. */
  note(name: string, describe: () => string | undefined): void {
    this.#notes.set(name, describe);
  }

  get ready(): boolean {
    return [...this.#checks.values()].every(({ ok }) => ok);
  }

  get missing(): string | null {
    return missingOf(Object.fromEntries(this.#checks));
  }

  report(): { status: 'ready' | 'not ready'; checks: Record<string, ReadinessCheck>; notes: Record<string, string> } {
    const notes = [...this.#notes].flatMap(([name, describe]) => {
      const text = describe();
      return text === undefined ? [] : [[name, text] as const];
    });
    return { status: this.ready ? 'ready' : 'not ready', checks: Object.fromEntries(this.#checks), notes: Object.fromEntries(notes) };
  }
}

/** For people: what is missing; null: nothing. */
export function missingOf(checks: Readonly<Record<string, ReadinessCheck>>): string | null {
  const missing = Object.entries(checks).filter(([, { ok }]) => !ok);
  return missing.length === 0 ? null : missing.map(([name, { detail }]) => `${name}: ${detail ?? 'not ready'}`).join('; ');
}
