import { laidOut, memberTexts } from '../ui/json-layout.ts';
import type { Manifest } from './lab-yaml.ts';

export const labKinds = ['filter', 'expression', 'transform', 'schema', 'event-type'] as const;
export type LabKind = (typeof labKinds)[number];

export const transformTypes = ['jsonata', 'javascript', 'liquid'] as const;
export type TransformType = (typeof transformTypes)[number];

/** A field and its JSON text. */
export type Field = [field: string, json: string];

/** What is being edited. */
export interface Draft {
  text: string;
  /** Type of a transform. */
  type: TransformType;
}

/** An object of the organization. */
export interface Stored {
  id: string;
  name: string;
  slug: string;
  draft: Draft;
  /** Routes that refer to it. */
  routeCount: number;
  /** The object of another organization that this one uses; null: it has its own content. */
  sharedFrom: { organization: string; name: string } | null;
  /** Fields that a manifest has besides, as JSON texts. */
  others: Field[];
  /** When it was changed last. */
  updatedAt: string;
  /** Name of the type whose events a subscription or an event type evaluates; null: any. */
  eventType: string | null;
  /** What a subscription has besides; null: it is something else. */
  subscription: StoredSubscription | null;
}

export interface StoredSubscription {
  endpointId: string;
  transformId: string | null;
  /** Filters by labels, which decide before the expression, as the API takes them. */
  labels: Field[];
}

export interface KindOfLab {
  word: string;
  /** Word in the choice of kinds. Default: `word`. */
  choice?: string;
  family: 'filters' | 'webhook-subscriptions' | 'transforms' | 'schemas' | 'event-types';
  read: `GET /${KindOfLab['family']}/{id}`;
  create: `POST /${KindOfLab['family']}`;
  update: `PATCH /${KindOfLab['family']}/{id}`;
  /** Whether it evaluates events that were sent to webhook endpoints, instead of events of sources. */
  isOfWebhooks: boolean;
  resource: Manifest['kind'];
  label: string;
  hint: string;
  start: Draft;
  /** The words of what passes and what does not. */
  passes: string;
  /** The word for several that pass. Default: `passes`. */
  severalPass?: string;
  fails: string;
}

export const kinds: Record<LabKind, KindOfLab> = {
  filter: {
    word: 'Filter',
    isOfWebhooks: false,
    family: 'filters',
    read: 'GET /filters/{id}',
    create: 'POST /filters',
    update: 'PATCH /filters/{id}',
    resource: 'Filter',
    label: 'Logic and conditions, as JSON',
    hint: 'An event passes when it meets all conditions (AND) or one of them (OR).',
    start: {
      text: '{\n  "logic": "AND",\n  "conditions": [\n    { "field": "payload.type", "operator": "exists" }\n  ]\n}',
      type: 'jsonata',
    },
    passes: 'Passes',
    severalPass: 'Pass',
    fails: 'Held back',
  },
  expression: {
    word: 'Subscription',
    choice: 'Expression',
    isOfWebhooks: true,
    family: 'webhook-subscriptions',
    read: 'GET /webhook-subscriptions/{id}',
    create: 'POST /webhook-subscriptions',
    update: 'PATCH /webhook-subscriptions/{id}',
    resource: 'WebhookSubscription',
    label: 'Filter expression, in CEL',
    hint: 'The expression sees event.type, event.data, labels and metadata. Numbers of the payload are doubles: write 100.0, not 100, in calculations.',
    start: { text: 'event.data.total > 100.0', type: 'jsonata' },
    passes: 'Sent',
    fails: 'Held back',
  },
  transform: {
    word: 'Transform',
    isOfWebhooks: false,
    family: 'transforms',
    read: 'GET /transforms/{id}',
    create: 'POST /transforms',
    update: 'PATCH /transforms/{id}',
    resource: 'Transform',
    label: 'Code',
    hint: 'It sees payload, headers, query and source of the event; id, time and method are those of the test.',
    start: { text: '{ "payload": payload }', type: 'jsonata' },
    passes: 'Transformed',
    fails: 'Not delivered',
  },
  schema: {
    word: 'Schema',
    isOfWebhooks: false,
    family: 'schemas',
    read: 'GET /schemas/{id}',
    create: 'POST /schemas',
    update: 'PATCH /schemas/{id}',
    resource: 'PayloadSchema',
    label: 'JSON Schema',
    hint: 'Draft 2020-12, or draft 07 if its $schema names it. A route with this schema delivers only events that meet it.',
    start: { text: '{\n  "type": "object",\n  "required": ["type"]\n}', type: 'jsonata' },
    passes: 'Valid',
    fails: 'Invalid',
  },
  'event-type': {
    word: 'Event type',
    isOfWebhooks: true,
    family: 'event-types',
    read: 'GET /event-types/{id}',
    create: 'POST /event-types',
    update: 'PATCH /event-types/{id}',
    resource: 'WebhookEventType',
    label: 'JSON Schema of the payload',
    hint: 'Draft 2020-12, or draft 07 if its $schema names it. An event of this type that breaks the schema is refused.',
    start: { text: '{\n  "type": "object",\n  "required": ["id"]\n}', type: 'jsonata' },
    passes: 'Valid',
    fails: 'Invalid',
  },
};

const memberOf = (members: ReadonlyMap<string, string>, name: string): string => members.get(name) ?? 'null';

/** The object in an answer of the API. Its numbers keep the digits that they are written with. */
export function storedIn(kind: LabKind, answer: string): Stored {
  const whole = memberTexts(answer) ?? new Map<string, string>();
  const members = memberTexts(whole.get('data') ?? '') ?? whole;
  const written = (name: string): string => memberOf(members, name);
  const textOf = (name: string): string => String(JSON.parse(members.get(name) ?? '""'));
  const nullable = (name: string): string | null => JSON.parse(written(name));
  const from: { organization: string; slug: string } | null = JSON.parse(written('sharedFrom'));
  const common = {
    id: textOf('id'),
    draft: draftOf(kind, members),
    routeCount: Number(members.get('routeCount') ?? 0),
    sharedFrom: from === null ? null : { organization: from.organization, name: from.slug },
    others: othersOf(kind, members),
    updatedAt: textOf('updatedAt'),
    subscription: null,
  };
  switch (kind) {
    case 'expression':
      return {
        ...common,
        name: `the subscription to ${nullable('eventTypeName') ?? 'a deleted event type'}`,
        slug: textOf('id'),
        eventType: nullable('eventTypeName'),
        subscription: {
          endpointId: textOf('endpointId'),
          transformId: nullable('transformId'),
          labels: [
            ['labelFilters', written('labelFilters')],
            ['labelFilterMode', written('labelFilterMode')],
          ],
        },
      };
    case 'event-type':
      return { ...common, name: textOf('name'), slug: textOf('name').replaceAll('_', '-'), eventType: textOf('name') };
    default:
      return { ...common, name: textOf('name'), slug: textOf('slug'), eventType: null };
  }
}

/** Further fields of the API that a manifest has, their names there, and the values that it leaves out. */
const otherFields: Readonly<Record<LabKind, readonly (readonly [field: string, inManifest: string, usual: string])[]>> = {
  filter: [
    ['description', 'description', 'null'],
    ['sharedWith', 'sharedWith', '[]'],
  ],
  transform: [
    ['description', 'description', 'null'],
    ['sharedWith', 'sharedWith', '[]'],
  ],
  schema: [
    ['description', 'description', 'null'],
    ['sharedWith', 'sharedWith', '[]'],
  ],
  expression: [
    ['labelFilterMode', 'labelFilterMode', '"all"'],
    ['isEnabled', 'enabled', 'true'],
  ],
  'event-type': [
    ['displayName', 'displayName', 'null'],
    ['description', 'description', 'null'],
    ['category', 'category', 'null'],
    ['examplePayload', 'examplePayload', 'null'],
    ['documentationUrl', 'documentationUrl', 'null'],
    ['isEnabled', 'enabled', 'true'],
    ['isDeprecated', 'deprecated', 'false'],
    ['deprecatedMessage', 'deprecatedMessage', 'null'],
    ['expiresAfterSeconds', 'expiresAfterSeconds', 'null'],
  ],
};

function othersOf(kind: LabKind, members: ReadonlyMap<string, string>): Field[] {
  return otherFields[kind].flatMap(([field, inManifest, usual]): Field[] => {
    const json = memberOf(members, field);
    return json === 'null' || json === usual ? [] : [[inManifest, json]];
  });
}

function draftOf(kind: LabKind, members: ReadonlyMap<string, string>): Draft {
  const written = (name: string): string => memberOf(members, name);
  const textIn = (name: string): string => String(JSON.parse(written(name)) ?? '');
  switch (kind) {
    case 'transform':
      return { text: textIn('code'), type: transformTypes.find((each) => JSON.stringify(each) === members.get('type')) ?? 'jsonata' };
    case 'expression':
      return { text: textIn('filterExpression'), type: 'jsonata' };
    case 'event-type':
      return { text: inLines(textIn('schema')), type: 'jsonata' };
    case 'filter':
      return { text: laidOut(`{"logic":${written('logic')},"conditions":${written('conditions')}}`).join('\n'), type: 'jsonata' };
    case 'schema':
      return { text: laidOut(written('jsonSchema')).join('\n'), type: 'jsonata' };
    default:
      return kind satisfies never;
  }
}

/** Returns JSON that is one line laid out in lines, and any other as its author has laid it out. */
function inLines(json: string): string {
  return json.includes('\n') ? json : laidOut(json).join('\n');
}

const emptyWords: Record<LabKind, string> = {
  filter: 'There are no conditions.',
  expression: 'There is no expression: every event of the type is sent.',
  transform: 'There is no code.',
  schema: 'There is no schema.',
  'event-type': 'There is no schema: every payload is accepted.',
};

/** The value of the text, as the fields of the API and of `spec`; or its error. */
export type Definition = { fields: Field[] } | { problem: string };

export function definitionOf(kind: LabKind, { text, type }: Draft): Definition {
  if (text.trim() === '') return { problem: emptyWords[kind] };
  if (kind === 'expression') return { fields: [['filterExpression', JSON.stringify(text)]] };
  if (kind === 'transform')
    return {
      fields: [
        ['type', JSON.stringify(type)],
        ['code', JSON.stringify(text)],
      ],
    };
  const members = jsonObject(text);
  if (typeof members === 'string') return { problem: members };
  if (kind === 'schema') return { fields: [['jsonSchema', text.trim()]] };
  if (kind === 'event-type') return { fields: [['schema', JSON.stringify(text)]] };
  const unknown = [...members.keys()].find((name) => name !== 'logic' && name !== 'conditions');
  if (unknown !== undefined) return { problem: `A filter has logic and conditions, and no ${unknown}.` };
  const conditions = members.get('conditions');
  if (conditions === undefined) return { problem: 'There are no conditions.' };
  return {
    fields: [
      ['logic', members.get('logic') ?? '"AND"'],
      ['conditions', conditions],
    ],
  };
}

/** The members of an object, or why the text is none. */
function jsonObject(text: string): Map<string, string> | string {
  const members = memberTexts(text);
  if (members !== null) return members;
  try {
    JSON.parse(text);
    return 'The text must be a JSON object.';
  } catch (thrown) {
    return `The text is not JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
  }
}

/** Fields as a JSON object. */
export function jsonOf(fields: readonly (readonly [field: string, json: string])[]): string {
  return `{${fields.map(([field, json]) => `${JSON.stringify(field)}:${json}`).join(',')}}`;
}
