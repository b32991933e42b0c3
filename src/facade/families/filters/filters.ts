import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { PosthornError } from '../../../core/errors.ts';
import { compileFilter } from '../../../core/filter-evaluation.ts';
import type { FilterDefinition } from '../../../core/records.ts';
import { description } from '../../../resources/fields.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { pageQuery } from '../../http/pagination.ts';
import { querySearch } from '../../http/query.ts';
import { refuseUsed, routesWith } from '../../records/in-use.ts';
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
import { inApiWords } from '../../records/store-errors.ts';
import { conditionField, filterBody } from './filter-body.ts';
import { filterTestOperation } from './filter-test.ts';

const filterLogic = z.enum(['AND', 'OR']);

const item = z
  .object({
    ...recordIdentity,
    description: shownDescription,
    conditions: z.array(conditionField).describe('What events must be; none while another organization does not share them.'),
    logic: filterLogic.describe('Whether all conditions must hold or one.'),
    ...shownSharing,
    routeCount: z.int().min(0).describe('Routes that refer to it.'),
    createdAt: recordTimes.createdAt,
  })
  .meta({ id: 'FilterItem' });
const record = item.extend(recordTimes).meta({ id: 'Filter' });

const body = z.strictObject({
  name: sentName.optional(),
  slug: sentSlug.optional(),
  description: description.nullable().optional(),
  ...filterBody,
  ...sentSharing,
});

async function toItem(object: PosthornObject<'Filter'>, call: Call): Promise<z.input<typeof item>> {
  const { conditions, logic } = await shownOf(object, call);
  return {
    ...identityOf(object, call),
    description: object.spec.description ?? null,
    conditions,
    logic,
    ...sharingOf(object),
    routeCount: routesWith(object, call).length,
    createdAt: timesOf(object).createdAt,
  };
}

async function shownOf({ kind, spec }: PosthornObject<'Filter'>, call: Call): Promise<FilterDefinition> {
  const { conditions, logic } = (await contentOf(call, { kind, spec })) ?? { conditions: [], logic: spec.logic };
  return { conditions, logic };
}

export const filters = resourceFamily(
  {
    kind: 'Filter',
    name: 'Filters',
    path: '/filters',
    description: 'Conditions on events that routes refer to.',
    record,
    item,
    body,
    required: ['name', 'conditions'],
    standIns: { conditions: 'sharedFrom' },
    immutable: { slug: (object) => [object.metadata.name] },
    query: z.object({ ...pageQuery, search: querySearch.optional().describe('Part of the name or slug.') }),
    examples: {
      create: { name: 'Large orders', conditions: [{ field: 'payload.amount', operator: 'gte', value: 1000 }] },
      change: { logic: 'OR' },
      shown: { slug: 'large-orders', description: null, routeCount: 1 },
    },
    errors: { delete: ['IN_USE'] },
    filter:
      ({ search }) =>
      (object) =>
        matchesText(search, object.spec.name, object.metadata.name),
    toItem,
    toRecord: async (object, call): Promise<z.input<typeof record>> => ({ ...(await toItem(object, call)), ...timesOf(object) }),
    toSpec: async ({ call, body: { name, description: text, conditions, logic, ...sent }, current }) => {
      const spec = current?.spec;
      const shown = current === undefined ? {} : { ...(await shownOf(current, call)) };
      const sharing = await sharingToSpec(call, 'Filter', { ...sent, content: { conditions, logic }, shown }, spec);
      const head = { name: nameToSpec(name, current), description: clearableToSpec(text, spec?.description), ...sharing };
      if (sharing.sharedFrom !== undefined) return { ...head, logic: spec?.logic } satisfies SpecInputOf<'Filter'>;
      const wanted = conditions ?? spec?.conditions;
      if (wanted === undefined) throw new PosthornError('VALIDATION_FAILED', 'conditions are required without sharedFrom.');
      const definition = { conditions: wanted, logic: logic ?? spec?.logic ?? 'AND' };
      const before = spec === undefined ? null : { conditions: spec.conditions, logic: spec.logic };
      if (canonicalJson(definition) !== canonicalJson(before)) inApiWords('Filter', () => compileFilter(definition));
      return { ...head, ...definition } satisfies SpecInputOf<'Filter'>;
    },
    beforeDelete: {
      looksAt: ['Route', 'Filter'],
      run: async (object, call) => {
        refuseUsed('filter', routesWith(object, call));
        await refuseTaken(object, call);
      },
    },
  },
  [filterTestOperation],
);
