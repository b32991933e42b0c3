import { PosthornError } from '../../core/errors.ts';
import { isReservedSlug } from '../../resources/names.ts';

/** One slug and no other, or the first free one of those that begin with it. */
export type WantedSlug = { exact: string } | { base: string };

/** Maximum length of slugs that are given or made here; objects from elsewhere may have longer ones. */
export const longestSlug = 50;
/** Units of a name that are read, the maximum of a name: records of an import are validated later. */
const longestName = 400;
const letters: Record<string, string> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', đ: 'd', ð: 'd', ł: 'l', þ: 'th', ı: 'i' };

/** The slug that a name suggests: accents folded, lower-case, `-` for the rest; `fallback` when nothing is left. */
export function slugOf(name: string, fallback: string): string {
  const plain = name
    .slice(0, longestName)
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{Mark}/gu, '')
    .replaceAll(/[ßæœøđðłþı]/g, (letter) => letters[letter] ?? '');
  return trimmed(plain.replaceAll(/[^a-z0-9]+/g, '-'), longestSlug) || fallback;
}

/** `base`, `base-2`, `base-3`, … without reserved ones, the numbered ones not longer than 50. */
export function* slugCandidates(base: string): Generator<string> {
  if (!isReservedSlug(base)) yield base;
  for (let number = 2; ; number++) {
    const suffix = `-${number}`;
    yield trimmed(base, longestSlug - suffix.length) + suffix;
  }
}

/** VALIDATION_FAILED for a slug that API paths use themselves. */
export function refuseReservedSlug(slug: string): void {
  if (isReservedSlug(slug)) throw new PosthornError('VALIDATION_FAILED', `slug "${slug}" is reserved: API paths use this word.`);
}

function trimmed(text: string, length: number): string {
  return text.replace(/^-+/, '').slice(0, length).replace(/-+$/, '');
}
