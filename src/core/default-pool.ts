/** The DeliveryPool of workers that name none, and of organizations that name none. */
export const defaultPool = 'default';
