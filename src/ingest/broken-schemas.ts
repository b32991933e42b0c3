import type { Sandbox } from '../sandbox/sandbox.ts';
import type { IngestPlan } from './plan.ts';

const keptLength = 500;

/** What the payload breaks of the schemas of a plan, by the id of the schema. */
export type BrokenSchemas = ReadonlyMap<string, string>;

const none: BrokenSchemas = new Map();

/** Asks the sandbox, once for each schema. Rejects with UNAVAILABLE when that has too much to do. */
export async function brokenSchemas(sandbox: Sandbox, { source, schemas }: IngestPlan, body: Buffer): Promise<BrokenSchemas> {
  if (schemas.length === 0) return none;
  const broken = new Map<string, string>();
  await Promise.all(
    schemas.map(async ({ id, jsonSchema }) => {
      if (jsonSchema === null) {
        broken.set(id, 'the schema of the route does not exist');
        return;
      }
      const [problem] = await sandbox.validate(source.org, jsonSchema, body, 1);
      if (problem !== undefined) broken.set(id, `payload${problem.path} ${problem.message}`.slice(0, keptLength));
    }),
  );
  return broken;
}
