import type { ServerVerdict } from './api-client.ts';

/**
 * The fields that the API server names. Strict decoding has no causes; its text has the fields in quotes or, for a
 * wrong type, the Go field. Complaints about `not` and `anyOf` have causes without a field and name it in their text.
 */
export function fieldsOfComplaint({ fields, message }: Extract<ServerVerdict, { message: string }>): string[] {
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
