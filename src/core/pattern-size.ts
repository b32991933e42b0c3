const token =
  /\\Q(?<quoted>.*?)(?:\\E|$)|(?<open>\((?:\?(?:P?<\w+>|[a-zA-Z-]*[:)])?)?)|(?<times>[*+?]|\{(?<min>\d+)(?<range>,(?<max>\d*))?\})|\\[pPx]\{[^}]*\}|\\[pP].|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|./gsu;
const emptyWidth = new Set(['^', '$', '\\b', '\\B', '\\A', '\\z']);

/** A group that is open. Sizes are in instructions. */
interface Group {
  isCaptured: boolean;
  /** Size of the alternatives before this one. */
  alternatives: number;
  /** RE2 joins alternatives of one character to one class. */
  hasCharacter: boolean;
  /** Size of this alternative without its last part, which a repetition repeats. */
  size: number;
  last: number;
  isCharacter: boolean;
}

/**
 * About how many instructions RE2 makes of a pattern, counted without compiling it. RE2 writes out what is repeated: `a{1000}` has a thousand. The number
 * may be too small for alternatives, by a few times, and is undefined for what is no pattern.
 */
export function unrolledSize(source: string): number {
  let group = newGroup(false);
  const outer: Group[] = [];
  for (const { 0: text, groups = {} } of source.matchAll(token)) {
    const { quoted, open, times } = groups;
    if (quoted !== undefined) for (const _ of quoted) add(group, 1, true);
    else if (times !== undefined) repeat(group, groups);
    else if (open?.endsWith(')') === true) continue;
    else if (open !== undefined) {
      outer.push(group);
      group = newGroup(!open.startsWith('(?') || open.includes('<'));
    } else if (text === '|') endAlternative(group);
    else if (text === ')') {
      const size = sizeOf(group);
      group = outer.pop() ?? newGroup(false);
      add(group, size, false);
    } else add(group, 1, !emptyWidth.has(text));
  }
  return [...outer, group].reduce((sum, each) => sum + sizeOf(each), 0);
}

function newGroup(isCaptured: boolean): Group {
  return { isCaptured, alternatives: 0, hasCharacter: false, size: 0, last: 0, isCharacter: false };
}

function add(group: Group, size: number, isCharacter: boolean): void {
  group.isCharacter = isCharacter && group.size === 0 && group.last === 0;
  group.size += group.last;
  group.last = size;
}

function repeat(group: Group, { min, range, max }: Record<string, string | undefined>): void {
  group.isCharacter = false;
  if (min === undefined) group.last++;
  else if (range === undefined) group.last *= Number(min);
  else if (max === undefined || max === '') group.last = group.last * Math.max(1, Number(min)) + 1;
  else group.last = (group.last + 1) * Number(max);
}

function endAlternative(group: Group): void {
  if (group.isCharacter) group.hasCharacter = true;
  else group.alternatives += group.size + group.last + 1;
  Object.assign(group, { size: 0, last: 0, isCharacter: false });
}

function sizeOf(group: Group): number {
  endAlternative(group);
  return group.alternatives + (group.hasCharacter ? 1 : -1) + (group.isCaptured ? 2 : 0);
}
