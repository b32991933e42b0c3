import { plainSecret } from '../core/plain-secret.ts';
import type { HeaderRecord } from '../core/records.ts';
import { headerValue } from '../resources/http-header.ts';
import { type Compiled, refuse } from './compiled.ts';

/** A header with its value; `isSecret`: of a Secret. */
export interface HeaderInput {
  name: string;
  value: string;
  isSecret: boolean;
}

/**
 * The headers at `at` of a spec for a record, those of Secrets sealed. What the spec holds itself stays as it is. Refuses values that cannot be sent. `published`: the headers of the record before.
 */
export function compileHeaders(
  headers: readonly HeaderInput[],
  at: string,
  published: readonly HeaderRecord[] | undefined,
  seal: (plain: string, envelopes: readonly string[]) => string,
): Compiled<HeaderRecord[]> {
  const envelopes = (published ?? []).flatMap(({ sealed }) => (sealed === undefined ? [] : [sealed]));
  const record: HeaderRecord[] = [];
  for (const { name, value: given, isSecret } of headers) {
    const value = isSecret ? plainSecret(given) : given;
    if (!headerValue.safeParse(value).success)
      return refuse('InvalidHeader', `the value of the header ${name} in ${at} contains characters that HTTP does not allow`);
    record.push(isSecret ? { name, sealed: seal(value, envelopes) } : { name, value });
  }
  return { record };
}
