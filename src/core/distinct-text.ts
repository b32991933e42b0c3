/** A text that differs in UTF-8 from that of every other text: there each half of a surrogate pair would be the same replacement character. */
export function distinctText(text: string): string {
  return text.isWellFormed() ? text : JSON.stringify(text);
}
