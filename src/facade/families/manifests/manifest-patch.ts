import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { isPosthornError, PosthornError } from '../../../core/errors.ts';
import { parsePlainJson } from '../../../core/plain-json.ts';
import { apiVersion } from '../../../resources/definition.ts';
import { isRecord } from '../../../resources/field-tree.ts';
import { kinds } from '../../../resources/kinds.ts';
import { type Call, type ChangePlan, type Operation, operation } from '../../http/operation.ts';
import { findManifest, servedKindOf } from './find-manifest.ts';
import { withNeededSecrets } from './manifest-secrets.ts';

/** First fields of a manifest. */
export const manifestHead = {
  apiVersion: z.literal(apiVersion).describe('Version of the kind.'),
  kind: z.string().describe('Its kind.'),
};

const answer = z
  .object({
    patch: z
      .object({
        ...manifestHead,
        metadata: z
          .object({
            name: z.string().describe('Its name in the namespace.'),
            namespace: z.string().describe('Namespace of the organization.'),
          })
          .describe('Its metadata.'),
        spec: z.record(z.string(), z.unknown()).describe('What differs; null: the field goes. Empty: nothing differs.'),
      })
      .describe('A merge patch (RFC 7386) of the custom resource.'),
    secrets: z
      .array(z.object({ name: z.string().describe('Its name.'), keys: z.array(z.string()).describe('Keys that the patch refers to.') }))
      .describe('Secrets that are to be made for the credentials of the change: the patch holds none.'),
  })
  .meta({ id: 'ManifestPatch' });

/** `plans`: how each family validates a change of its records. */
export function manifestPatchOperation(plans: readonly ChangePlan[]): Operation {
  return operation({
    method: 'POST',
    path: '/manifests/{id}/patch',
    operationId: 'getManifestPatch',
    summary: 'Write a change as a patch of the manifest',
    description:
      'For Git, where it owns fields that are to change. The change is validated as a `PATCH` of the record is. Nothing is written.',
    scope: 'write',
    looksOnly: true,
    body: z.strictObject({ change: z.record(z.string(), z.unknown()).describe('Body of a `PATCH` of the record.') }),
    requestExample: { change: { name: 'Orders' } },
    answer: { status: 200, description: 'The patch.', schema: answer },
    errors: [
      'RESOURCE_NOT_FOUND',
      'FIELD_MANAGED',
      'INVALID_URL',
      'INVALID_SOURCE',
      'INVALID_CONFIG',
      'CREDENTIALS_REQUIRED',
      'DUPLICATE_ROUTE',
      'CONFLICT',
    ],
    handle: async (call) => {
      const { id = '' } = call.params;
      const kind = servedKindOf(id);
      const plan = plans.find((each) => each.kind === kind);
      if (plan === undefined) {
        const { kind: found } = await findManifest(call, id);
        const text = `The API has no changes for what a manifest of the kind ${found} declares. Change it there.`;
        throw new PosthornError('FIELD_MANAGED', text);
      }
      const { current, spec } = await validated(plan, call, call.body.change);
      const { name, namespace = '' } = current.metadata;
      // As the store has it: without members that are undefined.
      const [before, after]: unknown[] = [current.spec, spec].map((each) => parsePlainJson(JSON.stringify(each)));
      const merged = mergePatch(before, after);
      if (canonicalJson(patched(before, merged)) !== canonicalJson(after))
        throw new PosthornError('VALIDATION_FAILED', 'A merge patch cannot set null: change it in the manifest itself.');
      const { patch, secrets } = withNeededSecrets(merged, current, before);
      return {
        patch: { apiVersion, kind: kinds[current.kind].kind, metadata: { name, namespace }, spec: isRecord(patch) ? patch : {} },
        secrets,
      };
    },
  });
}

/** `change` takes any object, so a field that the record does not have is not one that this body does not have. */
async function validated(plan: ChangePlan, call: Call, change: unknown): ReturnType<ChangePlan['validate']> {
  try {
    return await plan.validate(call, change);
  } catch (error) {
    if (!isPosthornError(error, 'UNKNOWN_FIELD')) throw error;
    throw new PosthornError('VALIDATION_FAILED', error.message, { details: error.details });
  }
}

/** RFC 7386: what makes `before` into `after`. */
function mergePatch(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return after;
  const members = [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name): [string, unknown][] => {
    if (!Object.hasOwn(after, name)) return [[name, null]];
    if (Object.hasOwn(before, name) && canonicalJson(before[name]) === canonicalJson(after[name])) return [];
    return [[name, mergePatch(before[name], after[name])]];
  });
  return Object.fromEntries(members);
}

/** RFC 7386: what the patch makes of `value`. */
function patched(value: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const members = new Map(isRecord(value) ? Object.entries(value) : []);
  for (const [name, inner] of Object.entries(patch)) {
    if (inner === null) members.delete(name);
    else members.set(name, patched(members.get(name), inner));
  }
  return Object.fromEntries(members);
}
