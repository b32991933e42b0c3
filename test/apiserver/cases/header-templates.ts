import { many, ref, secretRef, specCases, text, type ValidationCase } from './case.ts';

const destination = specCases('Destination', {});
const endpoint = specCases('WebhookEndpoint', {
  applicationRef: ref('shop'),
  url: 'https://shop.example/hooks',
  signingSecretRef: secretRef,
});

interface Template {
  name: string;
  template: string;
}
const named = (name: string, template = '{{ event.id }}'): Template => ({ name, template });

const kinds = [
  {
    ...destination,
    at: 'spec.http',
    most: 50,
    of: (headerTemplates: unknown, more: object = {}) => ({ http: { url: 'https://api.example/hooks', headerTemplates, ...more } }),
  },
  { ...endpoint, at: 'spec', most: 20, of: (headerTemplates: unknown, more: object = {}) => ({ headerTemplates, ...more }) },
];

const common = [
  '{{ event.id }} {{message.id}}{{ attempt }}',
  '{{ timestamp }}',
  '{{ payload }}',
  `{{ payload.a.0.b[1][-1]['x.y "z"']["it's"].$c@d:e/f-g_h }}`,
];
const ofDestinations = [
  '{{ source }}/{{ route }}/{{ destination }}',
  '{{ headers.X-Topic }}{{headers.x_a.b-c}}',
  '{{ headers.idempotency-key }}',
];
const ofEndpoints = ['{{ event.type }}/{{ application }}/{{ endpoint }}'];

const ofBoth = kinds.flatMap(({ valid, invalid, at, most, of }): ValidationCase[] => {
  const name = `${at}.headerTemplates[0].name`;
  const template = `${at}.headerTemplates[0].template`;
  return [
    valid('templated headers', of([named('X-Order', '{{ payload.order.id }}'), named('x!#$%', 'no placeholder')])),
    valid('no templated header', of([])),
    valid(`${most} templated headers, each as long as it may be`, of(many(most, (index) => named(`x-${index}${text(100)}`, text(1024))))),
    valid('10 placeholders', of([named('X-A', '{{ event.id }}'.repeat(10))])),
    ...[...common, 'a { b } }} c {', '{"id":"{{ event.id }}"}}', ' ~'].map((each) =>
      valid(`the template ${each}`, of([named('X-A', each)])),
    ),
    ...['Idempotency-Key', 'X-Hub-Signature-256', 'X-Public-Key', 'Content-Language'].map((each) =>
      valid(`${each} by a template`, of([named(each)])),
    ),
    ...[
      ...['{{', '{{ event.id', '{{ event.id }', '{{{ event.id }}', '{{ a {{ event.id }}', '{{}}', '{{ }}', '{{ event }}', '{{ Event.id }}'],
      ...[
        '{{ eventXid }}',
        '{{ payloads }}',
        '{{ payload. }}',
        '{{ payload..a }}',
        '{{ payload.a b }}',
        '{{ payload.* }}',
        '{{ payload[01] }}',
      ],
      ...['{{ payload[a] }}', "{{ payload['a{'] }}", '{{ payload | upcase }}', '{{ headers }}', '{{ env.HOME }}', '{{ query.a }}'],
      ...['Größe', 'a\tb', 'a\r\nb: c', 'a\u2028', '\u0000'],
    ].map((each) => invalid(`the template ${JSON.stringify(each)}`, of([named('X-A', each)]), template)),
    invalid('11 placeholders', of([named('X-A', '{{ event.id }}'.repeat(11))]), template),
    invalid('an empty template', of([named('X-A', '')]), template),
    invalid('a template of 1025 characters', of([named('X-A', text(1025))]), template),
    invalid('a templated header without a template', of([{ name: 'X-A' }]), template),
    invalid('a templated header with a value', of([{ ...named('X-A'), value: 'a' }]), `${at}.headerTemplates[0].value`),
    invalid('too many templated headers', of(many(most + 1, (index) => named(`x-${index}`))), `${at}.headerTemplates`),
    invalid('a templated header twice', of([named('x-a'), named('X-A')]), `${at}.headerTemplates`),
    invalid('a header in both lists', of([named('X-A')], { headers: [{ name: 'x-a', value: '' }] }), `${at}.headerTemplates`),
    ...[
      ...['', 'X A', 'X-Ä', 'X:', 'Host', 'content-length', 'Transfer-Encoding', 'Accept-Encoding', 'Proxy-Tunnel', 'Sec-CH-UA'],
      ...['webhook-id', 'Webhook-Signature', 'X-Posthorn-Attempt', 'Authorization', 'Cookie', 'X-Api-Key', 'x_gitlab.token', 'X-Sid'],
    ].map((each) => invalid(`the name ${JSON.stringify(each)} of a templated header`, of([named(each)]), name)),
  ];
});

export const headerTemplateCases: ValidationCase[] = [
  ...ofBoth,
  ...kinds
    .slice(0, 1)
    .flatMap(({ valid, invalid, of }) => [
      ...ofDestinations.map((each) => valid(`the template ${each}`, of([named('X-A', each)]))),
      ...ofEndpoints.map((each) => invalid(`the template ${each}`, of([named('X-A', each)]), 'spec.http.headerTemplates[0].template')),
      valid('the content type by a template', of([named('Content-Type', 'application/json; v={{ payload.v }}')])),
      invalid(
        'the header of auth by a template',
        of([named('X-Team')], { auth: { type: 'custom_header', headerName: 'x-team', headerValueSecretRef: secretRef } }),
        'spec.http.headerTemplates',
      ),
    ]),
  ...kinds
    .slice(1)
    .flatMap(({ valid, invalid, of }) => [
      ...ofEndpoints.map((each) => valid(`the template ${each}`, of([named('X-A', each)]))),
      ...ofDestinations.map((each) => invalid(`the template ${each}`, of([named('X-A', each)]), 'spec.headerTemplates[0].template')),
      ...['Content-Type', 'User-Agent'].map((each) => invalid(`${each} by a template`, of([named(each)]), 'spec.headerTemplates[0].name')),
    ]),
];
