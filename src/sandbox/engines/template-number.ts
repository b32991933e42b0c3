import type { Comparable } from 'liquidjs';
import { compareNumbers, ExactNumber, isContainer } from '../../core/exact-number.ts';
import { parseJson } from '../../core/read-json.ts';

/** A number of an event that templates write as it was sent. They calculate with its double, and compare by it with numbers of their own. */
export class TemplateNumber extends ExactNumber implements Comparable {
  equals(other: unknown): boolean {
    return other instanceof ExactNumber ? compareNumbers(this, other) === 0 : other === this.double;
  }

  gt(other: unknown): boolean {
    return this.#order(other) > 0;
  }

  geq(other: unknown): boolean {
    return this.#order(other) >= 0;
  }

  lt(other: unknown): boolean {
    return this.#order(other) < 0;
  }

  leq(other: unknown): boolean {
    return this.#order(other) <= 0;
  }

  /** NaN: they have none. */
  #order(other: unknown): number {
    if (other instanceof ExactNumber) return compareNumbers(this, other);
    const number = Number(other);
    if (this.double === number) return 0;
    return this.double < number ? -1 : this.double > number ? 1 : Number.NaN;
  }
}

/** The value of a JSON text, with `TemplateNumber` for numbers that are written differently than their doubles: one for each text. */
export function parseForTemplates(json: string): unknown {
  const value = parseJson(json);
  const known = new Map<string, TemplateNumber>();
  if (value instanceof ExactNumber) return numberOf(value);
  const rest: unknown[] = [value];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (!isContainer(next)) continue;
    for (const [key, member] of Object.entries(next)) {
      if (member instanceof ExactNumber)
        Object.defineProperty(next, key, { value: numberOf(member), enumerable: true, configurable: true, writable: true });
      else if (isContainer(member)) rest.push(member);
    }
  }
  return value;

  function numberOf({ text }: ExactNumber): TemplateNumber {
    const number = known.get(text) ?? new TemplateNumber(text);
    known.set(text, number);
    return number;
  }
}
