import { text } from './text.ts';

/** Local part (RFC 5321 dot-string) and a domain name; quoted local parts, address literals and line breaks are none. */
export const emailAddress = text(3, 254).regex(
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$/,
  'must be an e-mail address such as team@example.com',
);
