/** Statuses of deliveries that a replay may select. */
export const replayedDeliveryStatuses = ['delivered', 'failed', 'filtered', 'transform_failed', 'dlq'] as const;

/** The same of events: they have reached no route. */
export const replayedEventStatuses = ['no_routes', 'filtered'] as const;

/** The same of messages to webhook endpoints. */
export const replayedMessageStatuses = ['success', 'exhausted', 'dlq'] as const;
