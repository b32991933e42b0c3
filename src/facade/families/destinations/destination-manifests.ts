import { carriesCredential } from '../../../core/credential-names.ts';
import { mapInTurns } from '../../../core/in-turns.ts';
import { isRecord } from '../../../resources/field-tree.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import { isSecretRefName } from '../../../resources/secret-use.ts';
import type { Call } from '../../http/operation.ts';
import { mapConcurrently } from '../../records/concurrently.ts';
import { credentialsSecretName, type Manifest, manifestOf, manyManifestsYaml } from '../../records/manifest-yaml.ts';
import { readSecret, type SecretKeyRef } from '../../records/read-secret.ts';
import { generatedSecret } from '../../records/secret-draft.ts';
import { type HeaderSpec, keyOfHeader } from '../shared/static-headers.ts';

type Destination = PosthornObject<'Destination'>;

/** `to`: the reference in the manifest. `from`: the present reference of the value, or the value itself if the spec contains it. */
interface MovedRef {
  of: Destination;
  from: SecretKeyRef | string;
  to: SecretKeyRef;
}

/**
 * Returns the manifests of the destinations. Credentials that the API has stored are in a Secret named `<slug>-credentials`. With `includeSensitive` all Secrets
 * precede the destinations; otherwise a comment lists the Secrets to make.
 */
export async function destinationManifests(destinations: readonly Destination[], call: Call, includeSensitive: boolean): Promise<string> {
  const moved = await mapInTurns(call.turn, destinations, (destination) => {
    const refs: MovedRef[] = [];
    return { object: manifestOf(destination, movedSpec(destination, refs)), refs };
  });
  if (!includeSensitive) {
    const commented = await mapInTurns(call.turn, moved, ({ object, refs }) => ({
      object,
      ...(refs.length > 0 && { comment: commentFor(refs) }),
    }));
    return await manyManifestsYaml(call, commented);
  }
  const secrets = await secretManifests(
    moved.flatMap(({ refs }) => refs),
    call,
  );
  return await manyManifestsYaml(call, [...secrets, ...moved]);
}

function movedSpec(of: Destination, refs: MovedRef[]): unknown {
  const { http, ...rest } = of.spec;
  if (http?.headers === undefined) return withMovedRefs(of.spec, of, refs);
  const { headers, ...others } = http;
  const moved = Object(withMovedRefs({ ...rest, http: others }, of, refs));
  return { ...moved, http: { ...moved.http, headers: headers.map((header) => movedHeader(header, of, refs)) } };
}

/** Replaces a credential by a reference. The key in the Secret is named for the header. */
function movedHeader(header: HeaderSpec, of: Destination, refs: MovedRef[]): HeaderSpec {
  const { name, value = '', valueSecretRef } = header;
  const isOwn = valueSecretRef !== undefined && generatedSecret(valueSecretRef, of.metadata.name) === null;
  if (valueSecretRef === undefined && !carriesCredential({ name, value })) return header;
  const to = isOwn ? valueSecretRef : { name: credentialsSecretName(of.kind, of.metadata.name), key: keyOfHeader(name) };
  refs.push({ of, from: valueSecretRef ?? value, to });
  return { name, valueSecretRef: to };
}

function withMovedRefs(value: unknown, of: Destination, refs: MovedRef[]): unknown {
  if (Array.isArray(value)) return value.map((item) => withMovedRefs(item, of, refs));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, unknown] => {
    if (!isSecretRefName(name) || !isRecord(member)) return [name, withMovedRefs(member, of, refs)];
    const from = { name: String(member['name']), key: String(member['key']) };
    const slug = of.metadata.name;
    const field = generatedSecret(from, slug);
    const to = field === null ? from : { name: credentialsSecretName(of.kind, slug), key: field };
    refs.push({ of, from, to });
    return [name, to];
  });
  return Object.fromEntries(members);
}

function commentFor(refs: readonly MovedRef[]): string {
  const bySecret = Map.groupBy(refs, ({ to }) => to.name);
  return [...bySecret].map(([name, of]) => secretComment(name, [...new Set(of.map(({ to }) => to.key))])).join('\n');
}

/** Returns the comment on a Secret that the manifests need and do not contain. */
export function secretComment(name: string, keys: readonly string[]): string {
  return [
    `Needs the Secret ${name} with ${keys.length === 1 ? 'the key' : 'the keys'} ${keys.join(', ')}:`,
    `kubectl create secret generic ${name} ${keys.map((key) => `--from-literal=${key}=…`).join(' ')}`,
  ].join('\n');
}

async function secretManifests(refs: readonly MovedRef[], call: Call): Promise<{ object: Manifest; comment?: string }[]> {
  const bySecret = Map.groupBy(refs, ({ to }) => to.name);
  return await mapConcurrently([...bySecret], async ([name, of]) => {
    const values = await Promise.all(of.map(async (ref) => [ref.to.key, await valueBehind(ref, call)] as const));
    const known = values.filter((entry): entry is readonly [string, string] => entry[1] !== null);
    const unread = values.filter(([, value]) => value === null).map(([key]) => key);
    return {
      object: { apiVersion: 'v1', kind: 'Secret', metadata: { name }, type: 'Opaque', stringData: Object.fromEntries(known) },
      ...(unread.length > 0 && { comment: `Could not be read: ${unread.join(', ')}` }),
    };
  });
}

async function valueBehind({ of, from }: MovedRef, call: Call): Promise<string | null> {
  return typeof from === 'string' ? from : readSecret(call, of, from);
}
