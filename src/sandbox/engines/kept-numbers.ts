import { randomUUID } from 'node:crypto';
import { compareNumbers, ExactNumber, isDouble, jsonNumber } from '../../core/exact-number.ts';
import { forEachNumber, inexactNumbers } from '../../core/json-numbers.ts';
import { isJson } from '../../core/plain-json.ts';

/** Doubles; zeros with different signs are different. */
type Key = number | '-0';

function keyOf(double: number): Key {
  return Object.is(double, -0) ? '-0' : double;
}

const maxReported = 3;

/**
 * The spelling of an event's numbers that code sees as doubles, so that unchanged numbers keep their digits in its output: a double that is in
 * the output for one text of the input alone is written as that text.
 */
export class KeptNumbers {
  /** Null: more than one number of the input has this double. */
  readonly #texts: ReadonlyMap<Key, string | null>;
  readonly #values: ReadonlyMap<Key, readonly string[]>;
  readonly #lost = new Set<Key>();
  /** Represents a double in JSON text that has no text of its own there. Random, so that no output has it. */
  readonly mark = randomUUID();

  private constructor(texts: ReadonlyMap<Key, string | null>, values: ReadonlyMap<Key, readonly string[]>) {
    this.#texts = texts;
    this.#values = values;
  }

  /** Keeps the numbers of JSON texts; other texts are left out, as their numbers are none of JSON. Null when doubles represent all of the numbers. */
  static of(texts: readonly string[]): KeptNumbers | null {
    const kept = new Map<Key, string | null>();
    const values = new Map<Key, string[]>();
    for (const text of texts) {
      const places = inexactNumbers(text);
      if (places.length > 0 && !isJson(text)) continue;
      for (let i = 0; i < places.length; i += 2) {
        const written = text.slice(places[i], places[i + 1]);
        if (!isWhole(new ExactNumber(written))) note(written);
      }
    }
    if (kept.size === 0) return null;
    for (const text of texts.filter(isJson))
      forEachNumber(text, (start, end) => {
        const written = text.slice(start, end);
        if (kept.has(keyOf(Number(written)))) note(written);
      });
    return new KeptNumbers(kept, values);

    function note(written: string): void {
      const number = jsonNumber(written);
      const key = keyOf(Number(written));
      const known = kept.get(key);
      if (known === written) return;
      const others = values.get(key) ?? [];
      const isNew = others.length <= maxReported && others.every((other) => compareNumbers(jsonNumber(other), number) !== 0);
      if (known === undefined) kept.set(key, written);
      // Either of two forms of the same value will do, unless a double represents it.
      else if (isNew || others.length > maxReported || isDouble(number)) kept.set(key, null);
      if (isNew) values.set(key, [...others, written]);
    }
  }

  /** Whether JSON writes some of the doubles as something else, infinite ones as null, or writes another one as they are: -0 as 0. */
  get hasUnwritable(): boolean {
    return [...this.#texts.keys()].some((key) => key === '-0' || key === 0 || !Number.isFinite(key));
  }

  /** Spelling of a double; undefined: as JSON does it. */
  textOf(double: number): string | undefined {
    const key = keyOf(double);
    const text = this.#texts.get(key);
    if (text === null && (this.#values.get(key)?.length ?? 0) > 1) this.#lost.add(key);
    return text ?? undefined;
  }

  /** JSON text with the numbers as they are kept. */
  written(json: string): string {
    const pieces: string[] = [];
    let from = 0;
    forEachNumber(json, (start, end) => {
      const kept = this.textOf(Number(json.slice(start, end)));
      if (kept === undefined) return;
      pieces.push(json.slice(from, start), kept);
      from = end;
    });
    return pieces.join('') + json.slice(from);
  }

  /** Lost digits in the output; null: none. */
  get warning(): string | null {
    const lost = [...this.#lost]
      .slice(0, maxReported)
      .map((key) => (this.#values.get(key) ?? []).slice(0, maxReported).map(shown).join(' and '));
    if (lost.length === 0) return null;
    const more = this.#lost.size > maxReported ? ', and others' : '';
    return `numbers of the event are the same to the transform and may have changed: ${lost.join('; ')}${more}`;
  }
}

/** Whether the double is a whole number of this value, as that of 1.0 is: it loses nothing, and code may make it as well, as a count. */
function isWhole(number: ExactNumber): boolean {
  return Number.isSafeInteger(number.double) && isDouble(number);
}

const longestShown = 40;

function shown(number: string): string {
  return number.length > longestShown ? `${number.slice(0, longestShown)}…` : number;
}
