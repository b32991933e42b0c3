import { yamlText } from '../ui/yaml-text.ts';

export interface Manifest {
  kind: 'Filter' | 'Transform' | 'PayloadSchema' | 'WebhookSubscription' | 'WebhookEventType';
  /** Name of the object in its namespace. */
  name: string;
  /** Fields of `spec` as JSON texts, in their order. */
  spec: readonly (readonly [field: string, json: string])[];
}

/** The manifest of a custom resource. It names no namespace: the API does not report that of an organization. */
export function yamlOf({ kind, name, spec }: Manifest): string {
  const fields = spec.map(([field, json]) => `${JSON.stringify(field)}:${json}`);
  const head = JSON.stringify({ apiVersion: 'posthorn.dev/v1alpha1', kind, metadata: { name } });
  return yamlText(`${head.slice(0, -1)},"spec":{${fields.join(',')}}}`);
}

/** Words that API paths use themselves: the CRDs refuse them as names. */
const reservedNames: readonly string[] = ['bulk', 'export', 'import', 'test', 'by-external-id', 'upsert'];
const longestObjectName = 50;
/** Units of a display name that are read. */
const longestName = 400;
const letters: Record<string, string> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', đ: 'd', ð: 'd', ł: 'l', þ: 'th', ı: 'i' };

/** The name of an object that a name for people suggests, as the API makes a slug of it: with `-2`, `-3`, … where it is reserved or `taken`. */
export function objectNameOf(name: string, fallback: string, taken?: string): string {
  const plain = name
    .slice(0, longestName)
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{Mark}/gu, '')
    .replaceAll(/[ßæœøđðłþı]/g, (letter) => letters[letter] ?? '');
  const base = trimmed(plain.replaceAll(/[^a-z0-9]+/g, '-'), longestObjectName) || fallback;
  let free = base;
  for (let number = 2; reservedNames.includes(free) || free === taken; number++) {
    const suffix = `-${number}`;
    free = trimmed(base, longestObjectName - suffix.length) + suffix;
  }
  return free;
}

function trimmed(text: string, length: number): string {
  return text.replace(/^-+/, '').slice(0, length).replace(/-+$/, '');
}
