import { z } from 'zod';
import { headerName, headerValue, isSettableHeader } from '../../../resources/http-header.ts';

/** A valid header value, or the mask of a stored one. */
export const headerValueOrMask = z.union([headerValue, z.string().regex(/^•{4}.{0,4}$/u)]);

/** Headers as an object of names and values: at most `most`, each that configuration may set, and each once. */
export function headerMap(value: z.ZodType<string, string>, most: number) {
  return z
    .record(headerName, value)
    .refine((headers) => Object.keys(headers).length <= most, { error: `must have at most ${most} headers` })
    .refine((headers) => foreignIn(headers) === undefined, {
      error: ({ input }) => `must not have ${JSON.stringify(foreignIn(input))}: Posthorn, the connection or a browser alone sets it`,
    })
    .refine((headers) => new Set(Object.keys(headers).map((name) => name.toLowerCase())).size === Object.keys(headers).length, {
      error: 'must name each header once; upper and lower case do not differ',
    });
}

function foreignIn(headers: unknown): string | undefined {
  return Object.keys(Object(headers)).find((name) => !isSettableHeader(name));
}
