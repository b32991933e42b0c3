import type { PayloadFormat } from '../core/readable-payload.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { RoutingPlan } from './ingest-plan.ts';

const keptLength = 500;

/** Violations of a plan's schemas by the payload, by the id of the schema. */
export type BrokenSchemas = ReadonlyMap<string, string>;

export const noBrokenSchemas: BrokenSchemas = new Map();

/** A payload, and its content type; null: it is readable as it is. */
export interface CheckedPayload {
  body: Buffer;
  format: PayloadFormat | null;
}

/** Runs the sandbox, once for all schemas. Rejects with UNAVAILABLE when it is overloaded, and when `signal` ends the wait. */
export async function brokenSchemas(
  sandbox: Sandbox,
  { source, schemas }: RoutingPlan,
  { body, format }: CheckedPayload,
  signal: AbortSignal,
): Promise<BrokenSchemas> {
  const broken = new Map<string, string>();
  const known: { id: string; jsonSchema: string }[] = [];
  for (const { id, jsonSchema } of schemas) {
    if (jsonSchema === null) broken.set(id, 'the schema of the route does not exist');
    else known.push({ id, jsonSchema });
  }
  if (known.length === 0) return broken;
  const texts = known.map(({ jsonSchema }) => jsonSchema);
  const problems = await sandbox.validate({ organization: source.org, part: source.id }, texts, body, { maxProblems: 1, format, signal });
  for (const [position, { id }] of known.entries()) {
    const [problem] = problems[position] ?? [];
    if (problem !== undefined) broken.set(id, `payload${problem.path} ${problem.message}`.slice(0, keptLength));
  }
  return broken;
}
