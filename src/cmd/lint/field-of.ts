import { isRecord } from '../../resources/field-tree.ts';
import type { ConfigurationKind, PosthornObject } from '../../resources/kinds.ts';
import { references } from '../../resources/references.ts';
import { isSecretRefName } from '../../resources/secret-use.ts';

/** A field that names another object. */
interface NamingField {
  field: string;
  /** As reasons call it: `Secret`, or a kind without Webhook and Notification before it. */
  kind: string;
  name: string;
}

/** Reasons of conditions whose message may quote a path in another object. */
const ofAnother = /Not(Found|Ready|Accepted|Programmed|Shared|Readable|Permitted)$/;
const pathInMessage = /\bspec(?:\.[A-Za-z]\w*|\[[^\]\s]+\])+/;
const annotationInMessage = /\bannotation (posthorn\.dev\/[a-z-]+)/;
/** Subject of a message that begins with the code or the schema itself. */
const fieldOfReason: Readonly<Record<string, string>> = {
  InvalidTransform: 'spec.code',
  InvalidSchema: 'spec.jsonSchema',
  ExternalIdTaken: 'spec.externalId',
  NamespaceProtected: 'spec.namespace',
  NamespaceTaken: 'spec.namespace',
};

/** Returns the field that a condition is about, if its message or reason names one. */
export function fieldOf({ kind, spec }: PosthornObject<ConfigurationKind>, reason: string, message: string): string | undefined {
  const named = (): string | undefined => fieldThatNames(kind, spec, reason, message);
  const path = (): string | undefined => pathInMessage.exec(message)?.[0];
  const annotation = annotationInMessage.exec(message)?.[1];
  const namedField = ofAnother.test(reason)
    ? (named() ?? path())
    : (path() ?? fieldOfFirstWord(spec, message) ?? fieldOfReason[reason] ?? named());
  return namedField ?? (annotation === undefined ? undefined : `metadata.annotations.${annotation}`);
}

function fieldThatNames(kind: ConfigurationKind, spec: unknown, reason: string, message: string): string | undefined {
  const words = new Set(message.split(/[\s,;:()]+/).map((word) => word.replace(/\.$/, '')));
  const fields = [...namingFields(kind, spec)].filter(({ name }) => words.has(name));
  return (fields.find((each) => reason.startsWith(each.kind)) ?? fields[0])?.field;
}

function* namingFields(kind: ConfigurationKind, spec: unknown): Iterable<NamingField> {
  for (const { kind: target, path } of references[kind])
    for (const { field, value } of valuesAt(spec, path, 'spec'))
      if (isRecord(value) && typeof value['name'] === 'string')
        yield { field: `${field}.name`, kind: target.replace(/^(Webhook|Notification)/, ''), name: value['name'] };
  yield* secretFields(spec, 'spec');
}

function* secretFields(value: unknown, field: string): Iterable<NamingField> {
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* secretFields(item, `${field}[${index}]`);
  if (!isRecord(value)) return;
  for (const [member, inner] of Object.entries(value)) {
    if (isSecretRefName(member) && isRecord(inner) && typeof inner['name'] === 'string')
      yield { field: `${field}.${member}.name`, kind: 'Secret', name: inner['name'] };
    else yield* secretFields(inner, `${field}.${member}`);
  }
}

function* valuesAt(value: unknown, path: readonly string[], field: string): Iterable<{ field: string; value: unknown }> {
  const [member, ...rest] = path;
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* valuesAt(item, path, `${field}[${index}]`);
  else if (member === undefined) yield { field, value };
  else if (isRecord(value)) yield* valuesAt(value[member], rest, `${field}.${member}`);
}

/** Returns the field of the spec, or of a block of it, with which a message such as `examplePayload: …` or `useStaticIp needs …` begins. */
function fieldOfFirstWord(spec: unknown, message: string): string | undefined {
  const [word = ''] = /^[a-z]\w+(?=:? )/.exec(message) ?? [];
  if (word === '' || !isRecord(spec)) return undefined;
  if (spec[word] !== undefined) return `spec.${word}`;
  const block = Object.keys(spec).find((each) => isRecord(spec[each]) && spec[each][word] !== undefined);
  return block === undefined ? undefined : `spec.${block}.${word}`;
}
