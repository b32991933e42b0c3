import { z } from 'zod';
import { parsePlainJson } from '../core/plain-json.ts';

const mostViews = 50;
const ofBoth = ['status', 'errorType', 'responseStatus', 'where', 'from', 'to', 'failedFrom', 'failedTo'];
const ofDeliveries = [...ofBoth, 'routeId', 'destinationId'];
const ofMessages = [...ofBoth, 'applicationId', 'endpointId', 'eventType'];

/** The filters of the lists of the console that have views, as their addresses name them. */
export const viewScreens = {
  events: ['status', 'sourceId', 'where', 'from', 'to'],
  deliveries: ofDeliveries,
  messages: ofMessages,
  'dead-letters': [...new Set([...ofDeliveries, ...ofMessages, 'kind'])],
} as const satisfies Record<string, readonly string[]>;

type ViewScreen = keyof typeof viewScreens;
const screens = Object.keys(viewScreens) as [ViewScreen, ...ViewScreen[]];

const view = z
  .strictObject({
    name: z
      .string()
      .trim()
      .min(1)
      .max(60)
      .regex(/^\P{Cc}*$/u, 'must have no control characters'),
    screen: z.enum(screens),
    search: z.record(z.string(), z.string().min(1).max(2000)),
  })
  .superRefine(({ screen, search }, context) => {
    const filters: readonly string[] = viewScreens[screen];
    for (const name of Object.keys(search))
      if (!filters.includes(name))
        context.addIssue({ code: 'custom', path: ['search', name], message: `is no filter of ${screen}; there are ${filters.join(', ')}` });
  });

export type ConsoleView = z.output<typeof view>;

const views = z
  .array(view)
  .max(mostViews)
  .superRefine((list, context) => {
    const first = new Set<string>();
    for (const [index, { screen, name }] of list.entries()) {
      const key = JSON.stringify([screen, name]);
      if (first.has(key)) context.addIssue({ code: 'custom', path: [index, 'name'], message: `is that of another view of ${screen}` });
      first.add(key);
    }
  });

/** JSON text as POSTHORN_CONSOLE_VIEWS has it. */
export const consoleViews = z
  .string()
  .transform((text, context): unknown => {
    try {
      return parsePlainJson(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: `must be JSON: ${error instanceof Error ? error.message : String(error)}` });
      return z.NEVER;
    }
  })
  .pipe(views);
