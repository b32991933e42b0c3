import { many, ref, secretRef, specCases, text, type ValidationCase } from './case.ts';

const { valid, invalid, validChange, invalidChange } = specCases('WebhookEndpoint', {
  applicationRef: ref('shop'),
  url: 'https://shop.example/hooks',
  signingSecretRef: secretRef,
});
const header = (name: string, value = 'x') => ({ name, value });

export const webhookEndpointCases: ValidationCase[] = [
  valid('the smallest one', {}),
  valid('everything', {
    description: '',
    headers: [header('X-Tenant', '17')],
    timeoutSeconds: 120,
    rateLimitPerSecond: 100_000,
    rateLimitStrict: true,
    circuit: { failureThreshold: 1, successThreshold: 100, cooldownSeconds: 86_400 },
    enabled: false,
    disabledReason: 'Moved.',
  }),
  valid('a part of the circuit', { circuit: { cooldownSeconds: 5 } }),
  valid('http, which the controller judges', { url: 'http://localhost:8080/hooks' }),
  valid('a header of a Secret', { headers: [header('X-Tenant'), { name: 'Authorization', valueSecretRef: secretRef }] }),
  invalid('a header with both', { headers: [{ ...header('X-Tenant'), valueSecretRef: secretRef }] }, 'spec.headers[0].value'),
  valid('20 headers', { headers: many(20, (index) => header(`x-${index}`)) }),
  invalid('no application', { applicationRef: undefined }, 'spec.applicationRef'),
  invalid('no secret', { signingSecretRef: undefined }, 'spec.signingSecretRef'),
  invalid('a URL without a scheme', { url: 'shop.example/hooks' }, 'spec.url'),
  invalid('a URL with a password', { url: 'https://user:secret@shop.example/' }, 'spec.url'),
  valid('a description of two lines', { description: 'a\nb' }),
  invalid('a description with a control character', { description: 'a\u0008' }, 'spec.description'),
  invalid('a description too long', { description: text(501) }, 'spec.description'),
  invalid('21 headers', { headers: many(21, (index) => header(`x-${index}`)) }, 'spec.headers'),
  invalid('a header twice', { headers: [header('x-a'), header('X-A')] }, 'spec.headers'),
  invalid('a header of browsers', { headers: [header('Sec-CH-UA')] }, 'spec.headers[0].name'),
  invalid('a header of Posthorn', { headers: [header('webhook-id')] }, 'spec.headers[0].name'),
  invalid('the type of the content', { headers: [header('Content-Type')] }, 'spec.headers[0].name'),
  invalid('no time at all', { timeoutSeconds: 0 }, 'spec.timeoutSeconds'),
  invalid('too much time', { timeoutSeconds: 121 }, 'spec.timeoutSeconds'),
  invalid('a rate below nothing', { rateLimitPerSecond: -1 }, 'spec.rateLimitPerSecond'),
  invalid('a circuit that is never closed', { circuit: { failureThreshold: 0 } }, 'spec.circuit.failureThreshold'),
  invalid('a reason although it is enabled', { disabledReason: 'Moved.' }, 'spec.disabledReason'),
  invalid('an unknown field', { isDisabled: true }, 'spec.isDisabled'),
  validChange('another URL', {}, { url: 'https://other.example/' }),
  invalidChange('another application', {}, { applicationRef: ref('other') }, 'spec.applicationRef.name'),
];
