import { describe, expect, test } from '@jest/globals';
import { families } from '../../src/facade/families/families.ts';
import { openApiDocument } from '../../src/facade/openapi/openapi.ts';
import { isRecord } from '../../src/resources/field-tree.ts';
import { list, members, type Schema, withReferents } from './described-operations.ts';
import { DocumentSchemas } from './document-schemas.ts';

const text = JSON.stringify(await openApiDocument(families, '1.2.3'));
const document: Schema = JSON.parse(text);
const schemas = new DocumentSchemas(document);
const components = members(document['components']);
const operations = Object.values(members(withReferents(document)['paths'])).flatMap((item) =>
  Object.values(members(item)).filter((operation) => members(operation)['operationId'] !== undefined),
);
const named = new Map(operations.map((operation) => [String(members(operation)['operationId']), members(operation)]));

/** The schema that is behind a reference and beside null. */
function plain(given: unknown): Schema {
  const { $ref: _, ...said } = members(given);
  const schema = { ...schemas.resolved(members(given)), ...said };
  const others = list(schema['anyOf']).filter((each) => members(each)['type'] !== 'null');
  return others.length === 1 ? { ...schema, ...plain(others[0]) } : schema;
}

/** Every property in a component, by its path. */
function propertiesIn(schema: unknown, place: string): [string, Schema][] {
  if (Array.isArray(schema)) return schema.flatMap((each, i) => propertiesIn(each, `${place}[${i}]`));
  if (!isRecord(schema)) return [];
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (['default', 'enum', 'const', 'examples'].includes(keyword)) return [];
    if (keyword !== 'properties') return propertiesIn(value, place);
    return Object.entries(members(value)).flatMap(([name, property]): [string, Schema][] => [
      [`${place}.${name}`, members(property)],
      ...propertiesIn(property, `${place}.${name}`),
    ]);
  });
}

const bodyOf = (operationId: string): Schema =>
  members(members(members(members(named.get(operationId)?.['requestBody'])['content'])['application/json'])['schema']);
const queryOf = (operationId: string): Schema[] => list(named.get(operationId)?.['parameters']).map(members);

test('the OpenAPI document has at most 3.3 kB per operation', () => {
  expect(Buffer.byteLength(text) / operations.length).toBeLessThanOrEqual(3300);
});

describe('names in the OpenAPI document', () => {
  test('each body and each record is a component with a name', () => {
    const unnamed = [...named].flatMap(([id, operation]) => {
      const bodies = Object.entries(members(members(operation['requestBody'])['content']));
      const answers = Object.values(members(operation['responses'])).flatMap((answer) =>
        Object.entries(members(members(answer)['content'])),
      );
      const all = [...(id.startsWith('ingest') ? [] : bodies), ...answers].filter(([type]) => type === 'application/json');
      return all.some(([, media]) => members(members(media)['schema'])['$ref'] === undefined) ? [id] : [];
    });
    expect(unnamed).toEqual([]);
    expect(components['schemas']).toMatchObject({
      CreateDestinationBody: expect.anything(),
      HttpTestResult: expect.anything(),
      WarehouseTestResult: expect.anything(),
      TestFailure: expect.anything(),
    });
  });

  test('each variant of a choice between objects has a name', () => {
    const choices = Object.entries(members(components['schemas'])).flatMap(([name, schema]) =>
      list(members(schema)['anyOf']).map((each) => [name, each]),
    );
    const objects = choices.filter(([, each]) => members(members(each)['properties'])['success'] !== undefined);
    expect(objects).toEqual([]);
  });

  test('no two generated models have the same name', () => {
    const words = ['schemas', 'responses', 'parameters'].flatMap((section) =>
      Object.keys(members(components[section])).map((name) => name.toLowerCase()),
    );
    expect(new Set(words).size).toBe(words.length);
  });

  test('errors and shared parameters are components, and operations refer to them', () => {
    const inline = Object.values(members(document['paths'])).flatMap((item) =>
      Object.values(members(item)).flatMap((operation) =>
        Object.entries(members(members(operation)['responses'])).filter(
          ([status, answer]) => !/^2/.test(status) && !('$ref' in members(answer)),
        ),
      ),
    );
    expect(inline).toEqual([]);
    for (const name of ['Page', 'PageSize', 'Limit', 'Cursor', 'IdempotencyKey', 'DestinationId'])
      expect(components['parameters']).toHaveProperty(name);
  });
});

describe('what the OpenAPI document says of a thing that is not there', () => {
  test.each([
    ['getDestination', 'There is no such destination.'],
    ['deleteRoute', 'There is no such route.'],
    ['getCronJob', 'There is no such cron job.'],
    ['testNotificationChannel', 'There is no such notification channel.'],
    ['getEventType', 'There is no such event type.'],
    ['sendEvent', 'There is no such event type.'],
    ['rotateWebhookEndpointSecret', 'There is no such endpoint.'],
    ['createWebhookEndpoint', 'There is no such application.'],
    ['createWebhookSubscription', 'There is no such endpoint.'],
    ['testFilter', 'There is no such filter.'],
    ['getWebhookEndpointAnalytics', 'There is no such endpoint.'],
    ['retryDeadLetter', 'There is no such message.'],
    ['getDelivery', 'There is no such delivery.'],
    ['deleteApiKey', 'There is no such API key.'],
    ['listRoutes', 'There is no such organization, or these credentials have no rights in it.'],
  ])('%s: %s', (operationId, message) => {
    const answer = members(members(named.get(operationId)?.['responses'])['404']);
    const media = members(members(answer['content'])['application/json']);
    const { value } = members(members(media['examples'])['RESOURCE_NOT_FOUND']);
    const { message: shown = members(value)['error'] } = members(value);
    expect(shown).toBe(message);
  });
});

describe('fields in the OpenAPI document', () => {
  test.each(Object.entries(members(components['schemas'])))('%s says what each of its properties is', (name, schema) => {
    const silent = propertiesIn(schema, name).filter(([, property]) => {
      const said = property['description'] ?? schemas.resolved(property)['description'];
      return typeof said !== 'string' || !/\w.*[.`]$/s.test(said);
    });
    expect(silent.map(([place]) => place)).toEqual([]);
  });

  test.each([...named])('%s says what it does and what each of its parameters is', (_, operation) => {
    expect(String(operation['description']).replace(/Scope: .*$/, '')).toMatch(/[\w`]\. ?$/);
    for (const parameter of list(operation['parameters'])) expect(parameter).toHaveProperty('description', expect.stringMatching(/\w/));
  });

  test.each([
    ['createDestination', 'type', 'http'],
    ['createDestination', 'enabled', true],
    ['createDestination', 'method', 'POST'],
    ['createDestination', 'timeoutMs', 30_000],
    ['createDestination', 'authType', 'none'],
    ['createDestination', 'throttle.mode', 'off'],
    ['createDestination', 'retryPolicy.maxRetries', 10],
    ['createDestination', 'retryPolicy.initialDelay', 1000],
    ['createDestination', 'retryPolicy.maxDelay', 3_600_000],
    ['createDestination', 'retryPolicy.backoffMultiplier', 4],
    ['createDestination', 'config.fileFormat', 'jsonl'],
    ['createDestination', 'config.partitionBy', 'date'],
    ['createRoute', 'filterLogic', 'AND'],
    ['createRoute', 'priority', 0],
    ['createRoute', 'failoverDestinationIds', []],
    ['createRoute', 'failoverAfterAttempts', 3],
    ['createRoute', 'circuitCooldownSeconds', 300],
    ['createRoute', 'circuitFailureThreshold', 5],
    ['createRoute', 'circuitProbeSuccessThreshold', 2],
    ['createRoute', 'notifyOnFailure', false],
    ['createRoute', 'notifyOnSuccess', false],
    ['createRoute', 'notifyOnRecovery', false],
    ['createRoute', 'failureThreshold', 3],
    ['createRoute', 'enabled', true],
    ['createSource', 'enabled', true],
    ['createSource', 'provider', 'generic'],
    ['createSource', 'dedupWindowHours', 24],
    ['createCronJob', 'timezone', 'UTC'],
    ['createCronJob', 'method', 'POST'],
    ['createCronJob', 'timeoutMs', 30_000],
    ['createCronJob', 'useStaticIp', false],
    ['createCronJob', 'isActive', true],
    ['createNotificationChannel', 'enabled', true],
    ['createEventType', 'isEnabled', true],
    ['createWebhookApplication', 'rateLimitPerSecond', 100],
    ['createWebhookApplication', 'rateLimitPerMinute', 1000],
    ['createWebhookApplication', 'rateLimitPerHour', 10_000],
    ['createWebhookEndpoint', 'timeoutSeconds', 30],
    ['createWebhookEndpoint', 'rateLimitPerSecond', 0],
    ['createWebhookEndpoint', 'circuitFailureThreshold', 5],
    ['createWebhookEndpoint', 'circuitSuccessThreshold', 2],
    ['createWebhookEndpoint', 'circuitCooldownSeconds', 60],
    ['createWebhookSubscription', 'labelFilterMode', 'all'],
    ['createWebhookSubscription', 'isEnabled', true],
    ['rotateWebhookEndpointSecret', 'gracePeriodSeconds', 3600],
  ] as const)('the body of %s tells that the default of %s is %j', (operationId, path, standard) => {
    const field = path.split('.').reduce<Schema>((at, name) => plain(members(at['properties'])[name]), plain(bodyOf(operationId)));
    expect(field['default']).toEqual(standard);
  });

  test.each([
    ['listDestinations', 'page', 1],
    ['listDestinations', 'pageSize', 20],
    ['listEvents', 'limit', 50],
    ['listWebhookApplications', 'orderBy', 'created_at'],
    ['listWebhookApplications', 'order', 'desc'],
    ['exportOutboundMessages', 'format', 'json'],
    ['exportOutboundMessages', 'type', 'events'],
    ['exportOutboundMessages', 'limit', 10_000],
    ['getAnalytics', 'range', '24h'],
    ['getWebhookAnalytics', 'timeRange', '24h'],
  ])('the query of %s reports that the default of %s is %j', (operationId, name, standard) => {
    const parameter = queryOf(operationId).find((each) => each['name'] === name);
    expect(members(parameter?.['schema'])['default']).toEqual(standard);
  });

  const changes = operations
    .map(members)
    .filter(({ operationId, requestBody }) => /^(update|upsert|configure)/.test(String(operationId)) && requestBody !== undefined);
  test.each(changes.map((operation) => String(operation['operationId'])))(
    'the body of %s has no default: what is not sent stays',
    (operationId) => {
      const body = plain(bodyOf(operationId));
      const nested = Object.entries(members(body['properties'])).flatMap(([name, property]) => [
        [name, plain(property)] as const,
        ...Object.entries(members(plain(property)['properties'])).map(([inner, each]) => [`${name}.${inner}`, plain(each)] as const),
      ]);
      expect(nested.filter(([, property]) => 'default' in property).map(([name]) => name)).toEqual([]);
    },
  );

  test.each([
    ['updateDestination', ['id', 'createdAt', 'updatedAt', 'successRate', 'avgLatency', 'deliveriesCount', 'lastDeliveryAt']],
    ['updateRoute', ['id', 'source', 'destinations', 'circuitState', 'eventsRouted', 'lastEventAt', 'createdAt', 'updatedAt']],
    ['updateSource', ['id', 'ingestUrl', 'eventsCount', 'hasSigningSecret', 'createdAt']],
    ['updateCronJob', ['id', 'lastRunAt', 'nextRunAt', 'createdAt']],
    ['updateNotificationChannel', ['id', 'lastNotifiedAt']],
    ['updateEventType', ['id', 'schemaVersion', 'deprecatedAt', 'subscriptionCount']],
    ['updateWebhookApplication', ['id', 'totalEndpoints', 'totalMessagesSent', 'lastEventAt']],
    ['updateWebhookEndpoint', ['id', 'circuitState', 'hasSecret', 'totalMessages', 'lastSuccessAt']],
    ['updateWebhookSubscription', ['id', 'endpointUrl', 'applicationName', 'createdAt']],
  ])('the body of %s lists the fields that are read-only, and no other', (operationId, names) => {
    const body = plain(bodyOf(operationId));
    for (const name of names) expect(members(body['properties'])[name]).toMatchObject({ readOnly: true });
    expect(body['additionalProperties']).toBe(false);
  });

  test.each(['createDestination', 'updateDestination', 'updateRoute', 'updateSource', 'updateNotificationChannel'])(
    'the body of %s names isActive as an old name of enabled',
    (operationId) => {
      expect(members(plain(bodyOf(operationId))['properties'])['isActive']).toMatchObject({ type: 'boolean', deprecated: true });
    },
  );
});
