import type { RequestHandler } from 'express';
import { requestIdFor } from '../core/request-id.ts';

/** Echoes `X-Request-Id` when it is harmless, makes one otherwise, and leaves it in `response.locals.requestId`. */
export const requestId: RequestHandler = (request, response, next) => {
  const id = requestIdFor(request.headers['x-request-id']);
  response.locals['requestId'] = id;
  response.set('X-Request-Id', id);
  next();
};
