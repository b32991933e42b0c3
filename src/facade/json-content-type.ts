/** Of every answer in JSON. */
export const jsonContentType = 'application/json; charset=utf-8';
