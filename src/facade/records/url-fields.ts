import { httpsUrl, httpUrl } from '../../resources/url.ts';

/** URLs in bodies, by whose names the OpenAPI document refers to their long patterns. */
export const sentHttpUrl = httpUrl.meta({
  id: 'HttpUrl',
  description: 'Absolute http or https URL without user, password, spaces and port 0.',
});
export const sentHttpsUrl = httpsUrl.meta({
  id: 'HttpsUrl',
  format: 'uri',
  description: 'Absolute https URL without user, password, spaces and port 0.',
});
