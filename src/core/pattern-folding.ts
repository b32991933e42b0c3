const foldingFlag = /\(\?[a-zA-Z]*i/;
const unit = /\\x\{([0-9A-Fa-f]{1,6})\}|\\x([0-9A-Fa-f]{2})|\\(.)|./gsu;

/** What a class of a Unicode property costs, at most, counted in characters of a range. */
const charactersOfProperty = 2000;

/**
 * About how many characters RE2 goes through to fold the classes of a pattern: with `(?i)` it takes each character of a range in turn,
 * which makes `[a-\uffff]` cost 10 ms. 0 without that flag. Ranges are looked for everywhere, which counts some that are none.
 */
export function foldedCharacters(source: string): number {
  if (!foldingFlag.test(source)) return 0;
  const units = [...source.matchAll(unit)].map(([text, longHex, shortHex, escaped]) => ({
    text,
    isProperty: escaped === 'p' || escaped === 'P',
    code: codeOf(text, longHex ?? shortHex, escaped),
  }));
  return units.reduce((sum, { code, isProperty }, index) => {
    const end = units[index + 1]?.text === '-' ? units[index + 2] : undefined;
    return sum + (isProperty ? charactersOfProperty : 0) + Math.max(0, (end?.code ?? 0) - code);
  }, 0);
}

/** Other escapes than those of punctuation stand for control characters, octal numbers or classes: all of them are small. */
function codeOf(text: string, hex: string | undefined, escaped: string | undefined): number {
  if (hex !== undefined) return Number.parseInt(hex, 16);
  if (escaped !== undefined && /[0-9A-Za-z]/.test(escaped)) return 0;
  return (escaped ?? text).codePointAt(0) ?? 0;
}
