import { expect, test } from '@jest/globals';
import { forwardedHeaders } from './forwarded-headers.ts';

test('names are lower case, repeated headers stay repeated, order and values stay', () => {
  const raw = ['Content-Type', 'application/json', 'X-Tag', 'one', 'x-tag', 'Two', 'Webhook-Id', 'msg_1'];
  expect(forwardedHeaders(raw, undefined)).toEqual([
    ['content-type', 'application/json'],
    ['x-tag', 'one'],
    ['x-tag', 'Two'],
    ['webhook-id', 'msg_1'],
  ]);
});

test.each([
  'Host',
  'Connection',
  'Keep-Alive',
  'Proxy-Authorization',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Cookie',
  'Authorization',
  'Content-Length',
  'Expect',
  'X-Posthorn-Event-Id',
  'x-posthorn-failover',
  'x_posthorn_signature',
  'X.Posthorn.Event.Id',
  'content_length',
  'transfer_encoding',
  'host',
])('%s is not forwarded', (name) => {
  expect(forwardedHeaders([name, 'x'], undefined)).toEqual([]);
});

test.each([
  'Forwarded',
  'X-Forwarded-For',
  'X-Forwarded-User',
  'X-Forwarded-Client-Cert',
  'x_forwarded_user',
  'X-Real-IP',
  'True-Client-IP',
  'X-Original-URL',
  'X-Rewrite-URL',
  'X-HTTP-Method-Override',
  'X-Remote-User',
  'REMOTE_USER',
  'X-Client-Cert',
  'SSL-Client-S-DN',
  'X-SSL-Client-Verify',
  'X-Auth-Request-Email',
  'X-WebAuth-User',
  'X-Amzn-Oidc-Identity',
  'X-Amz-Security-Token',
  'X-Envoy-Original-Path',
  'X-Goog-IAP-JWT-Assertion',
  'X-Goog-Authenticated-User-Email',
  'X-MS-Client-Principal-Name',
  'X-MS-Token-AAD-Id-Token',
  'X-MS-Token-AAD-Access-Token',
  'Tailscale-User-Login',
  'X-Tailscale-User',
  'x_tailscale_user_login',
  'x.forwarded.for',
  'X_Amzn_Oidc_Identity',
  'CF-Access-Jwt-Assertion',
  'CF-Connecting-IP',
  'CF-IPCountry',
  'CF-Worker',
  'X-Forwarded',
  'X-Client-IP',
  'Client-IP',
  'Fly-Client-IP',
  'X-Azure-ClientIP',
  'X-Vercel-Forwarded-For',
  'X-Proxyuser-IP',
  'X-AppEngine-User-Email',
  'X-ARR-ClientCert',
  'X-TLS-Client-Cert',
  'X-MTLS-Client-Cert',
  'X-Nginx-SSL-Client-DN',
  'SSL-Cert',
  'X-SPIFFE-ID',
  'L5d-Client-Id',
  'Dapr-App-Id',
  'Proxy',
  'X-Host',
  'X-Scheme',
  'X-Script-Name',
  'X-Accel-Redirect',
  'X-Middleware-Subrequest',
  'Impersonate-User',
  'X-Consumer-Username',
  'X-Authentik-Username',
  'X-Vouch-User',
  'X-Auth-User',
  'X-Hasura-Role',
  'X-Apigateway-Api-Userinfo',
  'X-Endpoint-API-UserInfo',
  'X-JWT-Payload',
  'OIDC_CLAIM_email',
  'EPPN',
  'Mellon-Cookie-Id',
  'X-User',
  'X_User_Roles',
  'X-Groups',
])('%s, which receivers believe of their proxy, is not forwarded', (name) => {
  expect(forwardedHeaders([name, 'x'], undefined)).toEqual([]);
});

test.each([
  'X-GitHub-Event',
  'X-Shopify-Hmac-Sha256',
  'X-Amz-Sns-Message-Type',
  'X-Goog-Channel-Id',
  'X-Ms-Signature',
  'X-Request-Id',
  'X-Client-Version',
  'X-Forward',
  'Remoteness',
  'X-Proxy-Version',
  'X-User-Agent',
  'X-Email-Type',
  'X-Hostname',
  'Proxying',
  'Eppn-Count',
])('%s, which belongs to the event, is forwarded', (name) => {
  expect(forwardedHeaders([name, 'x'], undefined)).toEqual([[name.toLowerCase(), 'x']]);
});

test('what Connection names is not forwarded', () => {
  expect(forwardedHeaders(['X-Hop', '1', 'x_hop', '1', 'X-End', '2'], 'keep-alive, X-Hop')).toEqual([['x-end', '2']]);
});

test.each([
  'X-Api-Key',
  'X_Api_Key',
  'X-Auth-Token',
  'X-Amz-Security-Token',
  'X-Gitlab-Token',
  'Private-Token',
  'X-Webhook-Secret',
  'X-Vault-Token',
  'Set-Cookie',
])('%s, which is a credential of the sender, is not forwarded', (name) => {
  expect(forwardedHeaders([name, 'x'], undefined)).toEqual([]);
});

test.each([
  'Idempotency-Key',
  'I-Twilio-Idempotency-Token',
  'X-Hub-Signature-256',
  'Stripe-Signature',
  'Webhook-Signature',
  'X-Routing-Key',
])('%s, which identifies or proves the event, is forwarded', (name) =>
  expect(forwardedHeaders([name, 'x'], undefined)).toEqual([[name.toLowerCase(), 'x']]),
);
