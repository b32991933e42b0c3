import { z } from 'zod';
import { PosthornError } from '../../../core/errors.ts';
import { description } from '../../../resources/fields.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import { transform, transformCode, transformType } from '../../../resources/transform.ts';
import type { TransformType } from '../../../sandbox/jobs.ts';
import type { Call } from '../../http/operation.ts';
import { pageQuery } from '../../http/pagination.ts';
import { querySearch } from '../../http/query.ts';
import { refuseSubscribed, refuseUsed, routesWith } from '../../records/in-use.ts';
import { contentOf, refuseTaken, sentSharing, sharingOf, sharingToSpec, shownSharing } from '../../records/object-sharing.ts';
import {
  clearableToSpec,
  identityOf,
  nameToSpec,
  recordIdentity,
  recordTimes,
  sentName,
  sentSlug,
  shownDescription,
  timesOf,
} from '../../records/record-fields.ts';
import { resourceFamily } from '../../records/resource-family.ts';
import { matchesText } from '../../records/search.ts';
import { specField } from '../../records/spec-field.ts';
import { sameAs, sentSynonym } from '../../records/synonyms.ts';
import { refuseProblem } from '../shared/code-problem.ts';
import { contentFormats } from './content-formats.ts';
import { transformTestOperation } from './transform-test.ts';

const record = z
  .object({
    ...recordIdentity,
    description: shownDescription,
    type: transformType,
    transformType: transformType.describe('The same as type.'),
    code: z.string().describe('The code; empty while another organization does not share it.'),
    ...shownSharing,
    ...contentFormats.record,
    routeCount: z.int().min(0).describe('Routes that refer to it.'),
    ...recordTimes,
  })
  .meta({ id: 'Transform' });

const body = z.strictObject({
  name: sentName.optional(),
  slug: sentSlug.optional(),
  description: description.nullable().optional(),
  type: specField(transform.spec.shape.type),
  transformType: sentSynonym(transformType, 'type'),
  code: transformCode.optional(),
  ...sentSharing,
  ...contentFormats.body,
});

async function toRecord(object: PosthornObject<'Transform'>, call: Call): Promise<z.input<typeof record>> {
  const { description: text = null } = object.spec;
  const { type, code } = await shownOf(object, call);
  return {
    ...identityOf(object, call),
    description: text,
    type,
    transformType: type,
    code,
    ...sharingOf(object),
    ...contentFormats.shown,
    routeCount: routesWith(object, call).length,
    ...timesOf(object),
  };
}

async function shownOf({ kind, spec }: PosthornObject<'Transform'>, call: Call): Promise<{ type: TransformType; code: string }> {
  const { type, code } = (await contentOf(call, { kind, spec })) ?? { type: spec.type, code: '' };
  return { type, code };
}

export const transforms = resourceFamily(
  {
    kind: 'Transform',
    name: 'Transforms',
    path: '/transforms',
    description: 'Code that creates the payload that a route delivers from the event.',
    record,
    item: record,
    body,
    required: ['name', 'code'],
    standIns: { code: 'sharedFrom' },
    synonyms: { transformType: sameAs<'Transform', TransformType>('type', async (object, call) => (await shownOf(object, call)).type) },
    immutable: { slug: (object) => [object.metadata.name] },
    query: z.object({ ...pageQuery, search: querySearch.optional().describe('Part of the name or slug.') }),
    examples: {
      create: { name: 'Order to message', type: 'jsonata', code: '{"text": "Order " & payload.id & " over " & payload.amount}' },
      change: { code: '{"text": "New order " & payload.id}' },
    },
    errors: { delete: ['IN_USE'] },
    filter:
      ({ search }) =>
      (object) =>
        matchesText(search, object.spec.name, object.metadata.name),
    toItem: toRecord,
    toRecord,
    toSpec: async ({ call, body: { name, description: text, type, code, ...sent }, current }) => {
      const spec = current?.spec;
      const shown = current === undefined ? {} : await shownOf(current, call);
      const sharing = await sharingToSpec(call, 'Transform', { ...sent, content: { type, code }, shown }, spec);
      const head = { name: nameToSpec(name, current), description: clearableToSpec(text, spec?.description), ...sharing };
      if (sharing.sharedFrom !== undefined) return { ...head, type: spec?.type } satisfies SpecInputOf<'Transform'>;
      const definition = { type: type ?? spec?.type ?? 'jsonata', code: code ?? spec?.code };
      if (definition.code === undefined) throw new PosthornError('VALIDATION_FAILED', 'code is required without sharedFrom.');
      if (definition.type !== spec?.type || definition.code !== spec.code)
        refuseProblem(
          'code',
          await call.services.sandbox.checkTransform(call.caller.organization.id, { ...definition, code: definition.code }),
        );
      return { ...head, ...definition } satisfies SpecInputOf<'Transform'>;
    },
    beforeDelete: {
      looksAt: ['Route', 'Transform'],
      run: async (object, call) => {
        refuseUsed('transform', routesWith(object, call));
        await refuseTaken(object, call);
        await refuseSubscribed(object, call);
      },
    },
  },
  [transformTestOperation],
);
