import { base32 } from '../../core/ids.ts';
import type { FilteredRoute, FilterFailure, FilterResult } from './messages.ts';

/**
 * The results of the routes whose filter an event has not met, as one text (`includes/packed.lua`): in its first line the texts of why filters were not tried,
 * separated by tabs; then a line per route, `<route> <rule> <letter>[<condition>][ <number of its text>]`.
 */
const letters = { condition: 'c', none_met: 'n', untried: 'u', not_compiled: 'i' } as const satisfies Record<
  FilterFailure['reason'],
  string
>;
const reasons = new Map<string, FilterFailure['reason']>(
  Object.entries(letters).map(([reason, letter]) => [letter, reason as FilterFailure['reason']]),
);

const noRule = '-';
const maxTextLength = 500;
const keyLength = 21;
const packLength = 'evt_00'.length + keyLength;
const numberLength = 4;

/** Packs the results of an event that `filtered` routes have not taken. */
export function packedResults(filtered: readonly FilteredRoute[]): { text: string; routes: string } {
  const texts: string[] = [];
  const lines = filtered.map(({ routeId, why, untried }) => {
    const { rule = noRule, reason = 'none_met', condition } = why ?? {};
    const line = `${routeId} ${rule} ${letters[reason]}${condition ?? ''}`;
    return untried === undefined ? line : `${line} ${numberOf(texts, untried)}`;
  });
  return { text: [texts.join('\t'), ...lines].join('\n'), routes: filtered.map(({ routeId }) => routeId).join(' ') };
}

/** The key of the pack that a key is one of the results of, if there is such a pack; null where the key cannot be that of a result. */
export function packOfResult(key: string): string | null {
  return key.length === keyLength + numberLength ? key.slice(0, keyLength) : null;
}

/** From 1; of a text that is not among them it is appended. */
function numberOf(texts: string[], untried: string): number {
  const text = untried.replaceAll(/\s+/g, ' ').slice(0, maxTextLength);
  const at = texts.indexOf(text);
  return at < 0 ? texts.push(text) : at + 1;
}

/** Reverses `packedResults`; an unknown line is left out. */
export function unpackedResults(eventId: string, packed: string): FilterResult[] {
  const [head = '', ...lines] = packed.split('\n');
  const texts = head.split('\t');
  return lines.flatMap((line, number) => {
    const match = /^(\S+) (\S+) ([a-z])(\d*)(?: (\d+))?$/.exec(line);
    if (match === null) return [];
    const [, routeId = '', rule, letter = '', condition = '', text = ''] = match;
    const reason = reasons.get(letter);
    if (reason === undefined) return [];
    const failure = { ...(rule !== noRule && { rule }), reason, ...(condition !== '' && { condition: Number(condition) }) };
    return [{ deliveryId: resultId(eventId, number), routeId, failure, untried: texts[Number(text) - 1] ?? null }];
  });
}

/** The id of the delivery of the result with this number, in the order of `filtered`. */
export function resultId(eventId: string, number: number): string {
  const bits = Buffer.from([number >> 12, (number >> 4) & 255, (number & 15) << 4]);
  return `msg_${eventId.slice('evt_'.length, packLength)}${base32(bits).slice(0, numberLength)}`;
}
