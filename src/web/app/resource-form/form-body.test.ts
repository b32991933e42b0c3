import { describe, expect, test } from '@jest/globals';
import type { FormField } from '../../api/form-schema.ts';
import { complaintsOf, labelOf, missingFields, sentBody } from './form-body.ts';

const text = (name: string, more: Partial<FormField> = {}): FormField => ({ name, help: '', node: { kind: 'text' }, ...more });
const fields: FormField[] = [
  text('name', { isRequired: true }),
  { name: 'type', help: '', node: { kind: 'choice', values: ['http', 's3'] }, default: 'http' },
  text('url', { isRequired: true, when: { field: 'type', values: ['http'] } }),
  text('description', { isNullable: true }),
  {
    name: 'tls',
    help: '',
    node: { kind: 'object', fields: [text('caBundle', { isNullable: true }), text('region', { when: { field: 'type', values: ['s3'] } })] },
    isNullable: true,
  },
  {
    name: 'config',
    help: '',
    node: { kind: 'branches', on: 'type', branches: { http: [text('path', { isRequired: true })], s3: [text('bucket')] } },
  },
];

describe('the body that a form sends', () => {
  test('the body that a form sends has no field that does not count with the value of another one, and no field of another branch', () => {
    const body = { name: 'a', type: 's3', url: 'https://a.example', config: { path: '/', bucket: 'b' }, tls: { region: 'r' } };
    expect(sentBody(fields, body)).toEqual({ name: 'a', type: 's3', config: { bucket: 'b' }, tls: { region: 'r' } });
    expect(sentBody(fields, { name: 'a', tls: { region: 'r' } })).toEqual({ name: 'a', tls: {} });
  });

  test('the body that a form sends keeps members that the form lacks, so that the API validates them', () => {
    expect(sentBody(fields, { name: 'a', other: 1 })).toEqual({ name: 'a', other: 1 });
  });

  test('lacks required fields only where they count', () => {
    expect(missingFields(fields, {})).toEqual(['name', 'url']);
    expect(missingFields(fields, { name: 'a', url: 'u', config: {} })).toEqual(['config.path']);
    expect(missingFields(fields, { name: 'a', type: 's3' })).toEqual([]);
  });
});

describe('what the API complains of', () => {
  test('what the API complains of is at its field: from details, or from the message', () => {
    const names = ['name', 'url', 'list'];
    const told = (message: string, details = {}) => complaintsOf({ message, details }, names);
    expect(told('', { url: ['must be a URL'] })).toEqual({ url: 'url must be a URL.' });
    expect(told('url must be a URL; list[1].a is required.')).toEqual({ url: 'url must be a URL.', 'list[1].a': 'list[1].a is required.' });
    expect(told('spec.name is managed by "argocd". Change it there.')).toEqual({
      name: 'spec.name is managed by "argocd". Change it there.',
    });
    expect(told('The quota is used up.')).toEqual({});
  });
});

test('labels are words', () => {
  expect(['destinationIds', 'sourceId', 'externalId', 'timeoutMs', 'ingestUrl', 'ipAllowlist'].map(labelOf)).toEqual([
    'Destinations',
    'Source',
    'External ID',
    'Timeout (ms)',
    'Ingest URL',
    'IP allowlist',
  ]);
});
