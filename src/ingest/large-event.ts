import type { IncomingHttpHeaders } from 'node:http';
import { requestFormat } from '../core/readable-payload.ts';
import { queryParameters } from '../core/sent-query.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { patternsUntried } from './event.ts';
import type { RoutingPlan } from './ingest-plan.ts';
import type { LargeEvaluation } from './received-request.ts';

/**
 * Extracts in the sandbox what the filters of a plan need from the payload, and the texts at the paths `fields`. Rejects with UNAVAILABLE when that has too much
 * to do, and when `signal` ends the wait. No filter is met by a payload that takes more memory or time than the sandbox gives.
 */
export async function evaluateLarge(
  sandbox: Sandbox,
  { source, routes }: Pick<RoutingPlan, 'source' | 'routes'>,
  { headers, body, query }: { headers: IncomingHttpHeaders; body: Buffer; query: string },
  fields: readonly string[],
  signal: AbortSignal,
): Promise<LargeEvaluation> {
  const asking = routes.flatMap(({ id, filter, definition }) =>
    filter?.readsPayload === true && definition !== null ? [{ id, definition }] : [],
  );
  if (asking.length === 0 && fields.length === 0) return { verdicts: new Map(), document: {} };
  const filters = asking.map(({ definition }) => definition);
  const { evaluation, problem } = await sandbox.evaluate(
    { organization: source.org, part: source.id },
    { filters, headers, query: queryParameters(query), fields },
    body,
    {
      format: requestFormat(headers),
      signal,
    },
  );
  const untried = problem === undefined ? patternsUntried : `the filter was not tried: ${problem.message}`;
  const verdicts = asking.map(({ id }, i) => {
    const { isMet = false, decidedBy = null, isUntried = true } = evaluation?.verdicts[i] ?? {};
    return [id, { isMet, decidedBy, ...(isUntried && { untried }) }] as const;
  });
  return { verdicts: new Map(verdicts), document: documentOf(evaluation?.fields ?? {}) };
}

/** From texts by path. */
function documentOf(fields: Record<string, string>): object {
  const document: Record<string, unknown> = Object.create(null);
  for (const [path, text] of Object.entries(fields)) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    let inner = document;
    for (const name of names) {
      const next = inner[name] ?? Object.create(null);
      inner[name] = next;
      inner = next as Record<string, unknown>;
    }
    inner[last] = text;
  }
  return document;
}
