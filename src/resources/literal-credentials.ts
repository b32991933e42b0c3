import { carriesCredential } from '../core/credential-names.ts';
import { isRecord } from './field-tree.ts';

/** Paths of the values of headers in a spec that are credentials in clear, such as `spec.http.headers[Authorization].value`, wherever the list is. */
export function literalCredentialsIn(spec: unknown, path = 'spec'): string[] {
  if (Array.isArray(spec))
    return spec.flatMap((each: unknown, index) => {
      if (!isRecord(each)) return [];
      const { name, value } = each;
      if (typeof name !== 'string' || typeof value !== 'string') return literalCredentialsIn(each, `${path}[${index}]`);
      return path.endsWith('.headers') && carriesCredential({ name, value }) ? [`${path}[${name}].value`] : [];
    });
  if (!isRecord(spec)) return [];
  return Object.entries(spec).flatMap(([member, inner]) => literalCredentialsIn(inner, `${path}.${member}`));
}
