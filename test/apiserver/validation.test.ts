import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Admission, admit, admitStatus } from '../../src/resources/admission.ts';
import { type Kind, kindPath, type ObjectOf, type PosthornKind } from '../../src/resources/kinds.ts';
import { type ControlPlane, startControlPlane } from '../support/control-plane.ts';
import { ApiClient, collectionPath, type ServerVerdict } from './api-client.ts';
import { apiKeyCases } from './cases/api-key.ts';
import type { Body, ValidationCase } from './cases/case.ts';
import { coreCases } from './cases/core.ts';
import { deliveryPoolCases } from './cases/delivery-pool.ts';
import { destinationCases } from './cases/destination.ts';
import { filterCases } from './cases/filter.ts';
import { headerTemplateCases } from './cases/header-templates.ts';
import { httpCronJobCases } from './cases/http-cron-job.ts';
import { metadataCases } from './cases/metadata.ts';
import { notificationChannelCases } from './cases/notification-channel.ts';
import { organizationCases } from './cases/organization.ts';
import { payloadSchemaCases } from './cases/payload-schema.ts';
import { replayCases } from './cases/replay.ts';
import { routeCases } from './cases/route.ts';
import { sampleCases } from './cases/samples.ts';
import { sourceCases } from './cases/source.ts';
import { type StatusCase, statusCases } from './cases/status.ts';
import { transformCases } from './cases/transform.ts';
import { webhookApplicationCases } from './cases/webhook-application.ts';
import { webhookEndpointCases } from './cases/webhook-endpoint.ts';
import { webhookEventTypeCases } from './cases/webhook-event-type.ts';
import { webhookSubscriptionCases } from './cases/webhook-subscription.ts';

const posthornCases = [
  ...organizationCases,
  ...sourceCases,
  ...destinationCases,
  ...replayCases,
  ...routeCases,
  ...filterCases,
  ...transformCases,
  ...payloadSchemaCases,
  ...httpCronJobCases,
  ...notificationChannelCases,
  ...apiKeyCases,
  ...webhookEventTypeCases,
  ...webhookApplicationCases,
  ...webhookEndpointCases,
  ...headerTemplateCases,
  ...webhookSubscriptionCases,
  ...deliveryPoolCases,
  ...metadataCases,
];
const cases = [...posthornCases, ...coreCases, ...sampleCases];
const namespace = 'default';

let plane: ControlPlane;
let client: ApiClient;

beforeAll(async () => {
  plane = await startControlPlane({ crds: true });
  client = new ApiClient(plane);
}, 120_000);

afterAll(async () => {
  await client?.close();
  await plane?.stop();
});

test('the table has at least 150 cases of the kinds of the group, each with a name of its own', () => {
  expect(posthornCases.length).toBeGreaterThanOrEqual(150);
  expect(new Set(cases.map(title)).size).toBe(cases.length);
});

describe('the API server and admit agree on', () => {
  test.each(cases.map((each, index) => ({ ...each, index, title: title(each) })))('$title', async (each) => {
    const path = collectionPath(each.kind, namespace);
    if (each.old === undefined) {
      const object = wholeObject(each.kind, each.object, 'sample');
      return expectAlike(each, admit(each.kind, object), await client.write(path, object));
    }
    const stored = await client.write(path, wholeObject(each.kind, each.old, `case-${each.index}`), { keep: true });
    if (stored.object === undefined) throw new Error(`the object before the change is refused: ${stored.message}`);
    const { name, resourceVersion } = stored.object.metadata;
    const object = wholeObject(each.kind, { ...each.object, metadata: { ...each.object.metadata, resourceVersion } }, name);
    // The server's response is an object of the kind that was sent.
    const old = stored.object as unknown as ObjectOf<Kind>;
    return expectAlike(each, admit(each.kind, object, old), await client.write(path, object, { name }));
  });
});

describe('the API server says in words what a text must be', () => {
  const headers = (header: object) => ({ http: { url: 'https://a.example', headers: [header] } });
  test.each<[PosthornKind, string, object, string]>([
    [
      'NotificationChannel',
      'e-mail',
      { type: 'email', email: { addresses: ['no address'] } },
      'must be an e-mail address such as team@example.com',
    ],
    ['ApiKey', 'sha256', { sha256: 'Z'.repeat(64) }, 'must be 64 lower-case hex digits'],
    ['Organization', 'allowedHosts', { namespace: 'a', egress: { allowedHosts: ['a/b'] } }, 'must be a host name; *. may precede it'],
    ['Destination', 'header value', headers({ name: 'x-a', value: 'a\nb' }), 'must have no control characters and none beyond Latin-1'],
    ['Destination', 'header name', headers({ name: 'x a', value: 'b' }), 'must be a header name: letters, digits and -'],
    ['DeliveryPool', 'name of a variable', { podTemplate: { env: [{ name: 'a-b', value: '1' }] } }, 'must be letters, digits and _'],
    ['Source', 'name', { name: 'a\nb' }, 'must have no control characters or line breaks'],
    ['Route', 'reference', { sourceRef: { name: 'A' }, destinationRefs: [] }, 'must be lower-case letters, digits and -'],
    [
      'HttpCronJob',
      'time zone',
      { schedule: '0 0 1 1 *', url: 'https://a.example', timeZone: '+1' },
      'must be the name of a time zone, such as Europe/Berlin',
    ],
  ])('the API server says in words what a text must be of kind %s: %s', async (kind, _, spec, words) => {
    const { message } = await client.write(collectionPath(kind, namespace), wholeObject(kind, { spec }, 'sample'));
    expect(message).not.toContain('should match');
    expect(message).toContain(words);
  });
});

describe('the API server and admitStatus agree on', () => {
  test.each(statusCases.map((each, index) => ({ ...each, index, title: title(each) })))('$title', async (each) => {
    const path = collectionPath(each.kind, namespace);
    const spec = each.kind === 'Route' ? { sourceRef: { name: 'a' }, destinationRefs: [] } : {};
    const stored = await client.write(path, wholeObject(each.kind, { spec }, `status-${each.index}`), { keep: true });
    if (stored.object === undefined) throw new Error(`the object is refused: ${stored.message}`);
    const there = await client.write(path, { ...stored.object, status: each.status }, { name: `${stored.object.metadata.name}/status` });
    const here = admitStatus(each.kind, each.status);
    expectAlike(each, here.causes === undefined ? { object: { status: here.object } } : here, there);
  });
});

function expectAlike(each: ValidationCase | StatusCase, here: Admission<object>, there: ServerVerdict): void {
  if (each.invalid === undefined) {
    if (here.object === undefined || there.object === undefined) throw new Error(JSON.stringify({ here, there }));
    const fields = 'status' in each ? ['status'] : each.kind === 'Namespace' ? [] : ['spec', 'data', 'type', 'immutable'];
    expect(pick(here.object, fields)).toEqual(pick(there.object, fields));
    return;
  }
  expect(here.causes?.map(({ field }) => field)).toContain(each.invalid);
  const onServer = 'invalidOnServer' in each ? each.invalidOnServer : undefined;
  if (there.message === undefined) throw new Error('the API server takes it');
  if (onServer !== '') expect(fieldsOfComplaint(there)).toContain(onServer ?? each.invalid);
}

/** The fields of an object that its writer decides, here and there by the same names. */
function pick(object: object, fields: string[]): object {
  return Object.fromEntries(Object.entries(object).filter(([field]) => fields.includes(field)));
}

function wholeObject(kind: Kind, body: Body, name: string): Body {
  const { apiVersion, namespaced } = kindPath(kind);
  return { apiVersion, kind, ...body, metadata: { name, ...(namespaced && { namespace }), ...body.metadata } };
}

function title(each: ValidationCase | StatusCase): string {
  const done = 'status' in each ? 'with a status of' : 'old' in each ? 'changed with' : 'made with';
  return `${each.kind}, ${done} ${each.name}: ${each.invalid === undefined ? 'valid' : `invalid at ${each.invalid.slice(0, 80)}`}`;
}

/**
 * The fields that the API server names. Strict decoding has no causes; its text has the fields in quotes or, for a
 * wrong type, the Go field. Complaints about `not` and `anyOf` have causes without a field and name it in their text.
 */
function fieldsOfComplaint({ fields, message }: Extract<ServerVerdict, { message: string }>): string[] {
  const unknown = [...message.matchAll(/unknown field "([^"]+)"/g)].map((match) => match[1] ?? '');
  const ofKeywords = [...message.matchAll(/"((?:spec|status)[^"]*)" must/g)].map((match) => match[1] ?? '');
  const goField = /Go struct field (?:ObjectMeta|Secret)\.(?:metadata\.)?(\S+)/.exec(message)?.[1];
  return [
    ...fields,
    ...unknown,
    ...ofKeywords,
    ...(goField === undefined ? [] : [goField]),
    ...(message.includes('parsing time') ? ['a time'] : []),
  ];
}
