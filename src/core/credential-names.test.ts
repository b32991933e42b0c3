import { describe, expect, test } from '@jest/globals';
import { isCredentialHeader, isCredentialParameter } from './credential-names.ts';

const credentials = [
  ...['authorization', 'Authorization', 'proxy-authorization', 'x-authorization', 'cookie', 'set-cookie', 'x-api-key', 'X-API-Key'],
  ...['X_Api_Key', 'apikey', 'api-key', 'X-APIKey', 'ocp-apim-subscription-key', 'x-functions-key', 'dd-api-key', 'x-auth-token'],
  ...['x-amz-security-token', 'x-gitlab-token', 'private-token', 'x-goog-channel-token', 'x-csrf-token', 'token', 'x-accessToken'],
  ...['x-webhook-secret', 'client-secret', 'x-password', 'x-auth', 'x-goog-iap-jwt-assertion', 'x-session-id', 'x-vault-token', 'key'],
  ...['x-csrf', 'X-XSRF', 'x-otp', 'X-Pin', 'x-shared-access-signature', 'x-access-code'],
];
const others = [
  ...['content-type', 'user-agent', 'x-github-event', 'x-github-delivery', 'x-hub-signature-256', 'webhook-signature', 'webhook-id'],
  ...['idempotency-key', 'Idempotency-Key', 'x-idempotency-key', 'i-twilio-idempotency-token', 'surrogate-key', 'x-routing-key'],
  ...[
    'sec-websocket-key',
    'Sec-WebSocket-Key',
    'x-signature-jwt',
    'RoutingKey',
    'x-shopify-topic',
    'x-request-id',
    'traceparent',
    'x-author',
    'x-keyboard',
    'x-team',
    'stripe-signature',
    'x-signature',
    'x-pinned',
    'x-laptop',
  ],
];

describe('the name of a header', () => {
  test.each(credentials)('%s says that its value is a credential', (name) => expect(isCredentialHeader(name)).toBe(true));
  test.each(others)('%s does not say that its value is a credential', (name) => expect(isCredentialHeader(name)).toBe(false));
});

test.each(['token', 'access_token', 'api_key', 'apiKey', 'sig', 'signature', 'code', 'X-Amz-Signature', 'client_secret', 'password'])(
  'the parameter %s of a URL is a credential',
  (name) => expect(isCredentialParameter(name)).toBe(true),
);
test.each(['page', 'event', 'id', 'zipcode', 'idempotency_key'])('the parameter %s of a URL is no credential', (name) =>
  expect(isCredentialParameter(name)).toBe(false),
);
