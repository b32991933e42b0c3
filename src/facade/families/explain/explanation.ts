import { z } from 'zod';
import { isoTime, isoTimeOrNull, timestamp } from '../../records/record-fields.ts';

/** The form in which everything that has an id is explained. */

const maxSteps = 100;

const step = z
  .object({
    at: timestamp.nullable().describe('When it happened; null: as it is now.'),
    what: z.string().describe('One word for it, for programs.'),
    text: z.string().describe('The same as a sentence.'),
    data: z.record(z.string(), z.unknown()).describe('Ids and values that the sentence speaks of.'),
  })
  .meta({ id: 'ExplanationStep', description: 'A part of the story.' });
export type Step = z.input<typeof step>;

const wait = z
  .object({
    reason: z.string().describe('waitingFor of the delivery or message.'),
    until: timestamp.nullable().describe('When this ends at the earliest; null where it is unknown.'),
    text: z.string().describe('The same as a sentence.'),
  })
  .meta({ id: 'ExplanationWait', description: 'What it waits for.' });
export type Wait = z.input<typeof wait>;

const next = z
  .object({
    what: z.enum(['attempt', 'probe', 'run']).describe('What it is.'),
    at: timestamp.nullable().describe('When, at the earliest; null where it is unknown.'),
    text: z.string().describe('The same as a sentence.'),
  })
  .meta({ id: 'ExplanationNext', description: 'What happens next.' });
export type Next = z.input<typeof next>;

const advice = z
  .object({
    text: z.string().describe('What to do.'),
    command: z.string().optional().describe('A command line of curl that does it; $URL and $KEY are address and API key.'),
  })
  .meta({ id: 'ExplanationAdvice', description: 'Something to do now.' });
export type Advice = z.input<typeof advice>;

export const explanation = z
  .object({
    id: z.string().describe('The requested id.'),
    kind: z.string().describe('What it is the id of, such as delivery or route.'),
    summary: z.string().describe('The whole in one sentence.'),
    state: z
      .string()
      .describe(
        'Its status as its own record has it; phase of a replay; ready, not_ready, unknown, disabled or deleted of other resources.',
      ),
    story: z.array(step).describe('At most 100 parts: what happened, in its order, then what holds now.'),
    waitsFor: wait.nullable().describe('null when it does not wait.'),
    next: next.nullable().describe('null when nothing is due.'),
    advice: z.array(advice).describe('The most useful first; empty when there is nothing to do.'),
  })
  .meta({ id: 'Explanation', description: 'The story of one thing.' });
export type Explanation = z.input<typeof explanation>;

/** What a kind of resource adds to its explanation. */
export type More = Partial<Pick<Explanation, 'state' | 'summary' | 'waitsFor' | 'next' | 'advice'>> & { steps: Step[] };

/** Parts of the story that are left out are empty; their order is free. */
export function explained(
  parts: Pick<Explanation, 'id' | 'kind' | 'summary' | 'state' | 'story'> & Partial<Pick<Explanation, 'waitsFor' | 'next' | 'advice'>>,
): Explanation {
  return { waitsFor: null, next: null, advice: [], ...parts, story: inOrder(parts.story).slice(0, maxSteps) };
}

/** Past steps by time, then current facts. */
function inOrder(story: readonly Step[]): Step[] {
  const dated = story.filter((each) => each.at !== null);
  const atMs = ({ at }: Step): number => Date.parse(at ?? '');
  return [...dated.toSorted((a, b) => atMs(a) - atMs(b)), ...story.filter(({ at }) => at === null)];
}

/** Something that happened at a time in milliseconds since the epoch. */
export function happened(atMs: number, what: string, text: string, data: Step['data'] = {}): Step {
  return { at: isoTime(atMs), what, text, data };
}

/** Something that holds now. */
export function holds(what: string, text: string, data: Step['data'] = {}): Step {
  return { at: null, what, text, data };
}

/** `path`: below `/api`; it holds ids alone. */
export function advise(text: string, method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Advice {
  const verb = method === 'GET' ? '' : `-X ${method} `;
  const sent = body === undefined ? '' : ` -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  return { text, command: `curl ${verb}"$URL/api${path}" -H "x-api-key: $KEY"${sent}` };
}

/** ` at 2026-01-31T12:00:00.000Z`; empty where the time is unknown. */
export function atTime(ms: number | null): string {
  const time = isoTimeOrNull(ms);
  return time === null ? '' : ` at ${time}`;
}

/** `1 delivery`, `2 deliveries`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}
