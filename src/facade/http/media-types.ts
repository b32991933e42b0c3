import Negotiator from 'negotiator';

/** Content type of every answer in JSON. */
export const jsonContentType = 'application/json; charset=utf-8';

const json = 'application/json';
const types = [json, 'application/yaml', 'application/x-yaml', 'text/yaml'];

/** Whether a client prefers YAML to JSON, by its Accept header (RFC 9110, section 12.5.1). */
export function prefersYaml(accept: string | undefined): boolean {
  const preferred = new Negotiator({ headers: { accept } }).mediaType(types);
  return preferred !== undefined && preferred !== json;
}
