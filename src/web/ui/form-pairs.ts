/** The fields of `application/x-www-form-urlencoded`, decoded, in their order; a field that occurs twice is there twice. */
export function formPairs(text: string): [name: string, value: string][] {
  return [...new URLSearchParams(text.trimEnd()).entries()];
}
