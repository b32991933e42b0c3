/** Of which DeliveryPool workers are that say nothing of it, and which one serves organizations that name none. */
export const defaultPool = 'default';
