import { randomUUID } from 'node:crypto';

/** JSON text that is answered as it stands: of one that is read and written again large numbers lose digits, and keys that come twice are gone. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** JSON text of a value, in which `RawJson` stands as it is. */
export function jsonText(value: unknown): string {
  const texts: string[] = [];
  // Random, so that nothing in the value is taken for it.
  const mark = randomUUID();
  const json = JSON.stringify(value, (_key, member: unknown) => {
    if (!(member instanceof RawJson)) return member;
    texts.push(member.text);
    return mark;
  });
  return json
    .split(`"${mark}"`)
    .map((piece, i) => piece + (texts[i] ?? ''))
    .join('');
}
