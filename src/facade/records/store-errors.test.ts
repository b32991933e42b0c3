import { expect, test } from '@jest/globals';
import { PosthornError } from '../../core/errors.ts';
import { kinds } from '../../resources/kinds.ts';
import { forClients } from './store-errors.ts';

test.each([
  ['spec.name', 'name'],
  ['spec.http.url', 'url'],
  ['spec.http.headers.3.name', 'headers[3].name'],
  ['spec.http.headers[3].name', 'headers[3].name'],
  ['spec.http.auth.type', 'authType'],
  ['spec.http.auth.username', 'authConfig.username'],
  ['spec.http.auth.passwordSecretRef', 'authConfig.password'],
  ['spec.http.auth.tokenSecretRef', 'authConfig.token'],
  ['spec.http.auth.headerName', 'authConfig.headerName'],
  ['spec.http.auth.keySecretRef', 'authConfig.key'],
  ['spec.http.auth.headerValueSecretRef', 'authConfig.headerValue'],
  ['spec.http.tls.caBundle', 'tls.caBundle'],
  ['spec.http.tls.clientKeySecretRef', 'tls.clientKey'],
  ['spec.http.timeoutMs', 'timeoutMs'],
  ['spec.http.signingSecretRef', 'signingSecret'],
  ['spec.throttle.rateLimit', 'throttle.rateLimit'],
  ['spec.retryPolicy.initialDelayMs', 'retryPolicy.initialDelay'],
  ['spec.retryPolicy.maxDelayMs', 'retryPolicy.maxDelay'],
  ['spec.warehouse.prefix', 'config.prefix'],
  ['spec.warehouse.fieldMapping.0.source', 'fieldMapping[0].source'],
  ['spec.s3.bucket', 'config.bucket'],
  ['spec.s3.secretAccessKeySecretRef', 'config.secretAccessKey'],
  ['spec.r2.endpoint', 'config.endpoint'],
  ['spec.gcs.serviceAccountKeySecretRef', 'config.serviceAccountKey'],
  ['spec.azureBlob.accountKeySecretRef', 'config.accountKey'],
])('%s of a destination is %s', (path, field) => {
  const refused = new PosthornError('VALIDATION_FAILED', 'The resource is not valid.', { details: { [path]: ['is wrong'] } });
  expect(forClients(refused, 'Destination')).toMatchObject({ message: `${field} is wrong.`, details: { [field]: ['is wrong'] } });
});

test('no rule of destinations speaks to clients of what only the custom resource has', () => {
  const told = kinds.Destination.rules.map(({ message }) => {
    const refused = new PosthornError('VALIDATION_FAILED', 'The resource is not valid.', { details: { spec: [message] } });
    return String(forClients(refused, 'Destination'));
  });
  expect(told.filter((text) => /Ref\b|[a-z]Ms\b|warehouse\.|http\.auth/.test(text))).toEqual([]);
});
