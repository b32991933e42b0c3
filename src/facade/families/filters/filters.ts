import { z } from 'zod';
import { canonicalJson } from '../../../core/canonical-json.ts';
import { compileFilter } from '../../../core/filter.ts';
import { description } from '../../../resources/fields.ts';
import type { PosthornObject, SpecInputOf } from '../../../resources/kinds.ts';
import type { Call } from '../../http/operation.ts';
import { pageQuery } from '../../http/pagination.ts';
import { querySearch } from '../../http/query.ts';
import { refuseUsed, routesWith } from '../../records/in-use.ts';
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
    conditions: z.array(conditionField).describe('What events must be.'),
    logic: filterLogic.describe('Whether all conditions must hold or one.'),
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
});

function toItem(object: PosthornObject<'Filter'>, call: Call): z.input<typeof item> {
  return {
    ...identityOf(object, call),
    description: object.spec.description ?? null,
    conditions: object.spec.conditions,
    logic: object.spec.logic,
    routeCount: routesWith(object, call).length,
    createdAt: timesOf(object).createdAt,
  };
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
    toItem: async (object, call) => toItem(object, call),
    toRecord: async (object, call): Promise<z.input<typeof record>> => ({ ...toItem(object, call), ...timesOf(object) }),
    toSpec: async ({ body: { name, description: text, conditions, logic }, current }) => {
      const spec = current?.spec;
      const definition = { conditions: conditions ?? spec?.conditions ?? [], logic: logic ?? spec?.logic ?? 'AND' };
      const before = spec === undefined ? null : { conditions: spec.conditions, logic: spec.logic };
      if (canonicalJson(definition) !== canonicalJson(before)) inApiWords('Filter', () => compileFilter(definition));
      return {
        name: nameToSpec(name, current),
        description: clearableToSpec(text, spec?.description),
        ...definition,
      } satisfies SpecInputOf<'Filter'>;
    },
    beforeDelete: {
      looksAt: ['Route'],
      run: async (object, call) => {
        refuseUsed('filter', routesWith(object, call));
      },
    },
  },
  [filterTestOperation],
);
