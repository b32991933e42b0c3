/** The value of a JSON text, or what is wrong with the text. */
export function parsedJson(text: string): { value: unknown; problem?: undefined } | { value?: undefined; problem: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: `not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}
