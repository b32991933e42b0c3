const ofBoth = ['status', 'errorType', 'responseStatus', 'where', 'from', 'to', 'failedFrom', 'failedTo'] as const;
const ofDeliveries = [...ofBoth, 'routeId', 'destinationId'] as const;
const ofMessages = [...ofBoth, 'applicationId', 'endpointId', 'eventType'] as const;

/** The filters of the lists that have views, as their addresses name them. What an operator may configure has the same ones. */
export const listFilters = {
  events: ['status', 'sourceId', 'where', 'from', 'to'],
  deliveries: ofDeliveries,
  messages: ofMessages,
  'dead-letters': [...ofDeliveries, 'applicationId', 'endpointId', 'eventType', 'kind'],
} as const satisfies Record<string, readonly string[]>;

export type ListName = keyof typeof listFilters;

/** The filter of a list as a body has it: the address separates several values of these names by commas. */
export function severalOf<Filter extends object, Name extends keyof Filter>(
  filter: Filter,
  ...names: readonly Name[]
): Omit<Filter, Name> & { [Each in Name]?: string[] } {
  const several = names.flatMap((name) => {
    const value = filter[name];
    return typeof value === 'string' ? [[name, value.split(',')] as const] : [];
  });
  return { ...filter, ...(Object.fromEntries(several) as { [Each in Name]?: string[] }) };
}
