const foldingFlag = /\(\?[a-zA-Z]*i/;
const unit = /\\x\{([0-9A-Fa-f]{1,6})\}|\\x([0-9A-Fa-f]{2})|\\(.)|./gsu;

/** Measured costs of parts of classes, in characters of a range that is folded: about 150 ns each. */
const costs = { property: 200, foldedProperty: 2000, foldedClass: 400 };

/**
 * Cost of building the character classes of a pattern in RE2, in characters of a range that is folded. With `(?i)` it takes each character of a
 * range in turn, which makes `[a-\uffff]` cost 10 ms. Ranges are searched everywhere, which counts some that are none.
 */
export function classCost(source: string): number {
  const isFolded = foldingFlag.test(source);
  const units = [...source.matchAll(unit)].map(([text, longHex, shortHex, escaped]) => ({
    text,
    escaped,
    code: codeOf(text, longHex ?? shortHex, escaped),
  }));
  return units.reduce((sum, { text, escaped, code }, index) => {
    if (escaped === 'p' || escaped === 'P') return sum + (isFolded ? costs.foldedProperty : costs.property);
    if (!isFolded) return sum;
    const isClass = text === '[' || (escaped !== undefined && 'dwsDWS'.includes(escaped));
    const end = units[index + 1]?.text === '-' ? units[index + 2] : undefined;
    return sum + (isClass ? costs.foldedClass : 0) + Math.max(0, (end?.code ?? 0) - code);
  }, 0);
}

/** Escapes other than those of punctuation denote control characters, octal numbers or classes: all of them are small. */
function codeOf(text: string, hex: string | undefined, escaped: string | undefined): number {
  if (hex !== undefined) return Number.parseInt(hex, 16);
  if (escaped !== undefined && /[0-9A-Za-z]/.test(escaped)) return 0;
  return (escaped ?? text).codePointAt(0) ?? 0;
}
