import { z } from 'zod';
import { apiVersion } from '../../../resources/definition.ts';
import { isRecord } from '../../../resources/field-tree.ts';
import type { PosthornObject } from '../../../resources/kinds.ts';
import type { ManagedFieldsEntry } from '../../../resources/metadata.ts';
import { fromFieldsV1, pathElements, pathText, pointerOf, readablePath } from '../../../store/objects/field-set.ts';
import { type Family, operation } from '../../http/operation.ts';
import { recordField } from '../../records/api-names.ts';
import { manifestOf } from '../../records/manifest-yaml.ts';
import { type ForeignField, foreignFields } from '../../records/owned-spec.ts';
import { findManifest, type ManifestKind, servedKindOf } from './find-manifest.ts';
import { manifestEventsOperation } from './manifest-events.ts';
import { manifestHead, manifestPatchOperation } from './manifest-patch.ts';
import { withMaskedHeaders } from './manifest-secrets.ts';

const owner = z
  .object({
    path: z.string().describe('The field, as FIELD_MANAGED names it: `spec.http.url`.'),
    pointer: z.string().nullable().describe('JSON Pointer of the field in the manifest; null: nothing is there.'),
    field: z.string().nullable().describe('Field of the record that shows it; null: the API changes nothing of this resource.'),
    managers: z.array(z.string()).describe('Who owns it, such as `argocd` or `kubectl`.'),
  })
  .meta({ id: 'FieldOwner' });

const condition = z.object({
  type: z.string().describe('What it says something of.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it is so.'),
  reason: z.string().describe('Why, in one word.'),
  message: z.string().describe('Why, for people.'),
  lastTransitionTime: z.string().describe('Since when.'),
});

const answer = z
  .object({
    id: z.string().describe('Its id.'),
    manifest: z
      .object({
        ...manifestHead,
        metadata: z
          .object({
            name: z.string().describe('Its name in the namespace.'),
            namespace: z.string().describe('Namespace of the organization.'),
            labels: z.record(z.string(), z.string()).optional().describe('Its labels.'),
            annotations: z
              .record(z.string(), z.string())
              .optional()
              .describe('Annotations of Posthorn. Those of others may hold copies of the whole.'),
          })
          .describe('Its metadata.'),
        spec: z.record(z.string(), z.unknown()).describe('Its spec. Credentials that headers have in clear are masked.'),
      })
      .describe('The custom resource, without what the server sets.'),
    isLocked: z.boolean().describe('Whether the API changes nothing of it, since a manifest declares the whole.'),
    owners: z.array(owner).describe('Fields of the spec that others than the API own: a change of them is FIELD_MANAGED.'),
    conditions: z.array(condition).describe('What the controller reports about it.'),
  })
  .meta({ id: 'Manifest' });

/** `families`: those whose records custom resources keep. */
export const manifests = (families: readonly Family[]): Family => ({
  name: 'Manifests',
  noun: 'manifest',
  description: 'Resources as Kubernetes has them, and who owns which of their fields.',
  shown: {
    id: 'dst_mzxw6ytboi4dsnrrgq3tkojqge',
    apiVersion: 'posthorn.dev/v1alpha1',
    kind: 'Destination',
    path: 'spec.http.url',
    pointer: '/spec/http/url',
    field: 'url',
    managers: ['argocd'],
    name: 'orders',
    namespace: 'acme',
    annotations: { 'posthorn.dev/id': 'dst_mzxw6ytboi4dsnrrgq3tkojqge' },
    spec: { type: 'http', http: { url: 'https://orders.example.com/in' } },
    type: 'Ready',
    status: 'True',
    reason: 'Ready',
    message: 'Everything is in force.',
    count: 1,
    source: 'posthorn-controller',
    isKept: true,
  },
  operations: [
    operation({
      method: 'GET',
      path: '/manifests/{id}',
      operationId: 'getManifest',
      summary: 'Read a resource as its manifest',
      description:
        'By the id of a source, destination, route, filter, transform, schema, cron job, notification channel, replay or event type, or of an application, endpoint or subscription that a manifest declares.',
      scope: 'read',
      answer: { status: 200, description: 'The manifest.', schema: answer },
      errors: ['RESOURCE_NOT_FOUND'],
      handle: async (call) => {
        const { id = '' } = call.params;
        return toAnswer(await findManifest(call, id), id);
      },
    }),
    manifestEventsOperation,
    manifestPatchOperation(families.flatMap(({ changes }) => (changes === undefined ? [] : [changes]))),
  ],
});

/** Returns the response for the object that has this id. */
export function toAnswer(object: PosthornObject<ManifestKind>, id: string): z.input<typeof answer> {
  const {
    kind: name,
    metadata: { name: slug, ...labelled },
  } = manifestOf(object);
  const spec = withMaskedHeaders(object.kind, object.spec);
  const kind = servedKindOf(id);
  const owners = refusedFields(object.metadata.managedFields ?? []).map(({ path, managers }) => {
    const text = readablePath(path);
    return { path: text, pointer: pointerOf(path, object), field: kind === undefined ? null : recordField(kind, text), managers };
  });
  const conditions = object.status?.conditions ?? [];
  return {
    id,
    manifest: {
      apiVersion,
      kind: name,
      metadata: { name: slug, namespace: object.metadata.namespace ?? '', ...labelled },
      spec: isRecord(spec) ? spec : {},
    },
    isLocked: kind === undefined,
    owners,
    conditions: conditions.map(({ type, status, reason, message, lastTransitionTime }) => ({
      type,
      status,
      reason,
      message,
      lastTransitionTime,
    })),
  };
}

/**
 * The fields that another manager owns and that the API therefore refuses to change. An update makes its manager the owner of the enclosing objects
 * and lists, too. These are left out: the API may change and add other members of them.
 */
function refusedFields(managedFields: readonly ManagedFieldsEntry[]): ForeignField[] {
  const owned = managedFields.filter(({ subresource }) => subresource === undefined).flatMap(({ fieldsV1 }) => [...fromFieldsV1(fieldsV1)]);
  const containers = new Set(owned.flatMap(pathsAround));
  return foreignFields(managedFields).filter(({ path }) => !containers.has(path));
}

function pathsAround(path: string): string[] {
  const elements = pathElements(path);
  return elements.slice(1).map((_element, i) => pathText(elements.slice(0, i + 1)));
}
