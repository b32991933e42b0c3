import { z } from 'zod';
import { type Operation, operation } from '../../http/operation.ts';
import { idOf } from '../../records/lookup.ts';
import { importBodyBytes, importFields, maxImported } from '../../records/portable.ts';
import { WriteTransaction } from '../../records/write-transaction.ts';
import { importedRoute } from './portable-route.ts';
import { RouteImportPlanner } from './route-import-plan.ts';
import { RouteImportWrites } from './route-import-write.ts';
import { kindsReadByRouteWrites } from './route-spec.ts';

const routeResult = z.object({
  id: z.string().nullable().describe('null in a dry run, where the route is not there yet.'),
  name: z.string().describe('Its name.'),
  status: z.enum(['created', 'skipped', 'overwritten']).describe('What became of it.'),
});

const result = z.object({
  imported: z.int().describe('How many are new.'),
  skipped: z.int().describe('How many are skipped.'),
  overwritten: z.int().describe('How many are overwritten.'),
  errors: z.array(z.string()).describe('With one of them nothing is imported.'),
  warnings: z.array(z.string()).describe('Findings that need attention.'),
  routes: z.array(routeResult).describe('What became of each.'),
});

export const routeImportOperation: Operation = operation({
  method: 'POST',
  path: '/routes/import',
  operationId: 'importRoutes',
  summary: 'Import routes',
  description: [
    `Accepts an export document, or its records, at most ${maxImported}: all of them, or none. What a route refers to must be there by its slug;`,
    'what is missing is in `errors`. Conflicts, with routes that are there, are decided by name. Two routes that',
    'connect the same source and destinations, there or in the document, are an error, but with rename.',
  ].join(' '),
  scope: 'write',
  body: z.strictObject({ routes: z.array(importedRoute).max(maxImported).describe('Records as an export has them.'), ...importFields }),
  records: 'routes',
  maxBodyBytes: importBodyBytes,
  requestExample: {
    routes: [{ name: 'Orders', sourceSlug: 'shop', destinationSlugs: ['orders'], isActive: true }],
    conflictStrategy: 'rename',
  },
  answer: { status: 200, description: 'The result for each route; empty when there are errors.', schema: result },
  errors: ['FIELD_MANAGED', 'CONFLICT'],
  handle: async (call) => {
    const { routes: records, conflictStrategy, validateOnly = false } = call.body;
    const { plan, written } = await WriteTransaction.run(call, { reads: kindsReadByRouteWrites, isImport: true }, async (write) => {
      const writes = await RouteImportWrites.begin(call, write);
      const planned = await new RouteImportPlanner(call, conflictStrategy, records, writes).plan();
      if (planned.errors.length > 0) await write.rollBack();
      const isToBeWritten = planned.errors.length === 0 && !validateOnly;
      return { plan: planned, written: isToBeWritten ? await writes.write(planned.steps) : [] };
    });
    const steps = plan.errors.length > 0 ? [] : plan.steps;
    const count = (status: string): number => steps.filter((step) => step.status === status).length;
    return {
      imported: count('created'),
      skipped: count('skipped'),
      overwritten: count('overwritten'),
      errors: plan.errors,
      warnings: plan.warnings,
      routes: steps.map((step, index) => {
        const object = written[index] ?? (step.status === 'created' ? null : step.current);
        return { id: object === null ? null : idOf(object), name: step.name, status: step.status };
      }),
    } satisfies z.input<typeof result>;
  },
});
