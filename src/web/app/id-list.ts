/** Ids that are opened at once. */
export const maxIds = 50;
/** The pattern of an id. Names such as `order_paid` are shorter. */
export const idPattern = '[a-z]{2,5}_[a-z0-9]{20,}';
const anId = new RegExp(`^${idPattern}$`);

/** The ids of a text that has nothing else, each once; separated by blanks or commas. */
export function idsIn(text: string): string[] {
  const words = text.split(/[\s,;]+/).filter((word) => word !== '');
  return words.every((word) => anId.test(word)) ? [...new Set(words)] : [];
}
