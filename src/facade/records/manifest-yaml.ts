import { idAnnotation } from '../../core/ids.ts';
import { mapInTurns } from '../../core/in-turns.ts';
import { lazyPackage } from '../../core/lazy-package.ts';
import { apiVersion } from '../../resources/definition.ts';
import { type ConfigurationKind, kinds, type PosthornObject } from '../../resources/kinds.ts';
import type { ObjectMeta } from '../../resources/metadata.ts';
import type { Call } from '../http/operation.ts';
import { idOf } from './lookup.ts';
import { requestKeyAnnotation } from './request-keys.ts';

export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  [field: string]: unknown;
}

const yaml = lazyPackage<typeof import('yaml')>('yaml');

const ownPrefix = 'posthorn.dev/';

/** Annotations of Posthorn. Tools keep copies of the whole object in others, with its credentials. */
function ownAnnotations({ annotations = {} }: ObjectMeta): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => name.startsWith(ownPrefix) && name !== requestKeyAnnotation));
}

/**
 * The Secret of a manifest for the credentials that the API has stored. Objects of several kinds may have one name, so it has the kind in it, but for
 * destinations. Slugs have no dot.
 */
export function credentialsSecretName(kind: ConfigurationKind, slug: string): string {
  return kind === 'Destination' ? `${slug}-credentials` : `${slug}.${kinds[kind].noun.replaceAll(' ', '-')}-credentials`;
}

/** The resource as it may be kept in Git: without its namespace and server-set fields, with its id. `spec` may replace its own. */
export function manifestOf(object: PosthornObject<ConfigurationKind>, spec: unknown = object.spec): Manifest {
  const { name, labels } = object.metadata;
  return {
    apiVersion,
    kind: object.kind,
    metadata: {
      name,
      ...(labels !== undefined && { labels }),
      annotations: { ...ownAnnotations(object.metadata), [idAnnotation]: idOf(object) },
    },
    spec,
  };
}

/** A manifest, and what is to be known of it. */
export interface CommentedManifest {
  object: Manifest;
  comment?: string;
}

/** One YAML document each, with its comment before it. */
export function manifestsYaml(manifests: readonly CommentedManifest[]): string {
  return manifests.map(manifestYaml).join(documentSeparator);
}

/** The same of any number of manifests. */
export async function manyManifestsYaml({ turn }: Pick<Call, 'turn'>, manifests: readonly CommentedManifest[]): Promise<string> {
  return (await mapInTurns(turn, manifests, manifestYaml)).join(documentSeparator);
}

const documentSeparator = '---\n';

function manifestYaml({ object, comment }: CommentedManifest): string {
  const { Document } = yaml();
  // kubectl reads YAML 1.1, where yes and 12:30 are no strings.
  const document = new Document(object, { aliasDuplicateObjects: false, compat: 'yaml-1.1' });
  if (comment !== undefined) document.commentBefore = comment.replaceAll(/^/gm, ' ');
  return document.toString({ lineWidth: 0 });
}
