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
