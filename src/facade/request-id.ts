import { randomBytes } from 'node:crypto';
import type { RequestHandler } from 'express';
import { base32 } from '../core/ids.ts';

const acceptable = /^[A-Za-z0-9._:-]{1,128}$/;

/** Echoes `X-Request-Id` when it is harmless, makes one otherwise, and leaves it in `response.locals.requestId`. */
export const requestId: RequestHandler = (request, response, next) => {
  const sent = request.headers['x-request-id'];
  const id = typeof sent === 'string' && acceptable.test(sent) ? sent : `req_${base32(randomBytes(10))}`;
  response.locals['requestId'] = id;
  response.set('X-Request-Id', id);
  next();
};
