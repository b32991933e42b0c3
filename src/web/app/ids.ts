/** Ids that are looked up at once. */
export const mostIds = 50;
const anId = /^[a-z]{2,5}_[A-Za-z0-9_-]+$/;

/** The ids of a text that has nothing else, each once; separated by blanks or commas. */
export function idsIn(text: string): string[] {
  const words = text.split(/[\s,;]+/).filter((word) => word !== '');
  return words.every((word) => anId.test(word)) ? [...new Set(words)] : [];
}
