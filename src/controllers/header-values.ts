import type { Refusal } from '../compile/compiled.ts';
import type { HeaderInput } from '../compile/headers.ts';
import type { SecretReference } from '../resources/secret-use.ts';
import type { ObjectSecrets } from './secret-reader.ts';

interface HeaderSpec {
  name: string;
  value?: string | undefined;
  valueSecretRef?: SecretReference | undefined;
}

/** The headers of a spec with the values behind their references. */
export async function readHeaders(
  headers: readonly HeaderSpec[] | undefined,
  secrets: ObjectSecrets,
): Promise<{ headers: HeaderInput[]; unresolved?: undefined } | { headers?: undefined; unresolved: Refusal }> {
  const read: HeaderInput[] = [];
  for (const { name, value = '', valueSecretRef } of headers ?? []) {
    if (valueSecretRef === undefined) {
      read.push({ name, value, isSecret: false });
      continue;
    }
    const secret = await secrets.read(valueSecretRef, 'headerValue');
    if (secret.unresolved !== undefined) return { unresolved: secret.unresolved };
    read.push({ name, value: secret.value, isSecret: true });
  }
  return { headers: read };
}
