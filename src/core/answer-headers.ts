/** Headers of every answer: no browser guesses its type, no cache keeps it. Pages that may be kept set a `Cache-Control` of their own. */
export const answerHeaders = [
  ['X-Content-Type-Options', 'nosniff'],
  ['Cache-Control', 'no-store'],
] as const;
