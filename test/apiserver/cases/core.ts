import { text, type ValidationCase } from './case.ts';

const secret = (name: string, object: Record<string, unknown>, invalid?: string, invalidOnServer?: string): ValidationCase => ({
  name,
  kind: 'Secret',
  object,
  ...(invalid !== undefined && { invalid }),
  ...(invalidOnServer !== undefined && { invalidOnServer }),
});
const changed = (name: string, old: Record<string, unknown>, object: Record<string, unknown>, invalid?: string): ValidationCase => ({
  ...secret(name, object, invalid),
  old,
});
const namespace = (name: string, metadata: Record<string, unknown>, invalid?: string): ValidationCase => ({
  name,
  kind: 'Namespace',
  object: { metadata },
  ...(invalid !== undefined && { invalid }),
});

export const coreCases: ValidationCase[] = [
  secret('nothing in it', {}),
  secret('data', { data: { token: 'c2VjcmV0', empty: '', 'a.b_C-d': 'YQ==' } }),
  secret('plain text beside data', { data: { a: 'YQ==', b: 'YQ==' }, stringData: { b: 'b', c: 'größe' } }),
  secret('a type of its own', { type: 'posthorn.dev/credentials' }),
  secret('an empty type', { type: '' }),
  secret('a null value', { data: { a: null }, stringData: null }),
  secret('data that is not base64', { data: { token: 'secret!' } }, 'data.token', ''),
  secret('base64 without its padding', { data: { token: 'YQ' } }, 'data.token', ''),
  secret('a number as data', { data: { token: 5 } }, 'data.token', 'data'),
  secret('a key with a slash', { data: { 'a/b': 'YQ==' } }, 'data.a/b', 'data[a/b]'),
  secret('a key that climbs', { stringData: { '..': 'x' } }, 'stringData...', 'data[..]'),
  secret('a key of 254 characters', { data: { [text(254)]: '' } }, `data.${text(254)}`, `data[${text(254)}]`),
  secret('1 MiB', { data: { a: Buffer.alloc(1024 * 1024).toString('base64') } }),
  secret('more than 1 MiB', { data: { a: Buffer.alloc(1024 * 1024 + 1).toString('base64') } }, 'data'),
  secret('an unknown field', { secret: {} }, 'secret'),
  secret('an object as data', { data: [] }, 'data'),
  secret('a name with a dot', { metadata: { name: 'a.b' } }),
  secret('a reserved name', { metadata: { name: 'bulk' } }),
  secret('a name in upper case', { metadata: { name: 'A' } }, 'metadata.name'),
  changed('other data', { data: { a: 'YQ==' } }, { data: { a: 'Yg==' } }),
  changed('another type', { type: 'a' }, { type: 'b' }, 'type'),
  changed('other data though it is immutable', { immutable: true, data: { a: 'YQ==' } }, { immutable: true, data: { a: 'Yg==' } }, 'data'),
  changed('an immutability that is taken back', { immutable: true }, { immutable: false }, 'immutable'),
  changed('another label though it is immutable', { immutable: true }, { immutable: true, metadata: { labels: { a: 'b' } } }),
  namespace('labels', { name: 'acme', labels: { a: 'b' } }),
  namespace('a name with a dot', { name: 'a.b' }, 'metadata.name'),
  namespace('a name of 63 characters', { name: text(63) }),
  namespace('a name of 64 characters', { name: text(64) }, 'metadata.name'),
  { name: 'an unknown field', kind: 'Namespace', object: { metadata: { name: 'acme' }, data: {} }, invalid: 'data' },
];
