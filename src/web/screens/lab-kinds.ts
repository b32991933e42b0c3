import { laidOut, memberTexts } from '../ui/json-text.ts';
import { type Manifest, objectNameOf } from './lab-yaml.ts';

export const labKinds = ['filter', 'transform', 'schema'] as const;
export type LabKind = (typeof labKinds)[number];

export const transformTypes = ['jsonata', 'javascript', 'liquid'] as const;
export type TransformType = (typeof transformTypes)[number];

/** A field and its JSON text. */
type Field = [field: string, json: string];

/** What is being edited. */
export interface Draft {
  text: string;
  /** Of a transform. */
  type: TransformType;
}

/** An object of the organization. */
export interface Stored {
  id: string;
  name: string;
  slug: string;
  draft: Draft;
  /** The object of another organization that stands for this one; null: it has its own content. */
  sharedFrom: { organization: string; name: string } | null;
  /** Fields that a manifest has besides, as JSON texts. */
  others: Field[];
}

export interface KindOfLab {
  word: string;
  list: 'GET /filters' | 'GET /transforms' | 'GET /schemas';
  read: 'GET /filters/{id}' | 'GET /transforms/{id}' | 'GET /schemas/{id}';
  create: 'POST /filters' | 'POST /transforms' | 'POST /schemas';
  update: 'PATCH /filters/{id}' | 'PATCH /transforms/{id}' | 'PATCH /schemas/{id}';
  resource: Manifest['kind'];
  label: string;
  hint: string;
  start: Draft;
  /** The words of what passes and what does not. */
  passes: string;
  fails: string;
}

export const kinds: Record<LabKind, KindOfLab> = {
  filter: {
    word: 'Filter',
    list: 'GET /filters',
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
    fails: 'Held back',
  },
  transform: {
    word: 'Transform',
    list: 'GET /transforms',
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
    list: 'GET /schemas',
    read: 'GET /schemas/{id}',
    create: 'POST /schemas',
    update: 'PATCH /schemas/{id}',
    resource: 'PayloadSchema',
    label: 'JSON Schema',
    hint: 'The API checks payloads against a schema that is saved: save it before you run it, as a new one if routes use this one.',
    start: { text: '{\n  "type": "object",\n  "required": ["type"]\n}', type: 'jsonata' },
    passes: 'Valid',
    fails: 'Invalid',
  },
};

/** The object in an answer of the API. Its numbers keep the digits that they are written with. */
export function storedIn(kind: LabKind, answer: string): Stored {
  const members = memberTexts(answer) ?? new Map<string, string>();
  const textOf = (name: string): string => String(JSON.parse(members.get(name) ?? '""'));
  const others = ['description', 'sharedWith'].flatMap((name): Field[] => {
    const json = members.get(name) ?? 'null';
    return json === 'null' || json === '[]' ? [] : [[name, json]];
  });
  const from: { organization: string; slug: string } | null = JSON.parse(members.get('sharedFrom') ?? 'null');
  const sharedFrom = from === null ? null : { organization: from.organization, name: from.slug };
  return { id: textOf('id'), name: textOf('name'), slug: textOf('slug'), draft: draftOf(kind, members), sharedFrom, others };
}

function draftOf(kind: LabKind, members: ReadonlyMap<string, string>): Draft {
  const written = (name: string): string => members.get(name) ?? 'null';
  if (kind === 'transform') {
    const type = transformTypes.find((each) => JSON.stringify(each) === members.get('type')) ?? 'jsonata';
    return { text: String(JSON.parse(members.get('code') ?? '""')), type };
  }
  const json = kind === 'filter' ? `{"logic":${written('logic')},"conditions":${written('conditions')}}` : written('jsonSchema');
  return { text: laidOut(json).join('\n'), type: 'jsonata' };
}

/** What the text says, as the fields of the API and of `spec`; or why it is none. */
export type Definition = { fields: Field[] } | { problem: string };

export function definitionOf(kind: LabKind, { text, type }: Draft): Definition {
  if (kind === 'transform') {
    if (text.trim() === '') return { problem: 'There is no code.' };
    return {
      fields: [
        ['type', JSON.stringify(type)],
        ['code', JSON.stringify(text)],
      ],
    };
  }
  const members = jsonObject(text);
  if (typeof members === 'string') return { problem: members };
  if (kind === 'schema') return { fields: [['jsonSchema', text.trim()]] };
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

export interface Edited {
  /** What it came from; null: it is a new one. */
  stored: Stored | null;
  /** Empty: none is given. */
  newName: string;
  /** Null: the text says nothing. */
  fields: Field[] | null;
  isChanged: boolean;
}

/**
 * The manifest of the object that was opened, or of another one where a name is given. What another organization shares has no content here, so once
 * changed it is another one too. Null: there is nothing to write.
 */
export function manifestOf({ resource, word }: KindOfLab, { stored, newName, fields, isChanged }: Edited): Manifest | null {
  const shown = newName || (stored?.name ?? `Lab ${word.toLowerCase()}`);
  const named: Field = ['name', JSON.stringify(shown)];
  if (stored !== null && newName === '') {
    const { slug, sharedFrom, others } = stored;
    if (sharedFrom !== null && !isChanged)
      return { kind: resource, name: slug, spec: [named, ...others, ['sharedFrom', JSON.stringify(sharedFrom)]] };
    if (sharedFrom === null && fields !== null) return { kind: resource, name: slug, spec: [named, ...others, ...fields] };
  }
  if (fields === null) return null;
  const name = objectNameOf(newName || (stored?.slug ?? shown), `lab-${word.toLowerCase()}`, stored?.slug);
  return { kind: resource, name, spec: [named, ...fields] };
}

/** Fields as a JSON object. */
export function jsonOf(fields: readonly (readonly [field: string, json: string])[]): string {
  return `{${fields.map(([field, json]) => `${JSON.stringify(field)}:${json}`).join(',')}}`;
}
