import {
  type HeaderTemplate,
  type ReadyTemplate,
  readyTemplates,
  type TargetPaths,
  type TemplatedMessage,
  templatedHeaders,
} from '../../../core/header-template.ts';
import { payloadHeaders } from '../../../core/reserved-headers.ts';
import type { DestinationHeaders } from './request-headers.ts';

/**
 * The templates of a target, taken apart once; null: it has none. `isAllowed`: of a name in lower case, as of the other headers of the target. A header that `own` has
 * comes from there.
 */
export function ownTemplates(
  templates: readonly HeaderTemplate[] | undefined,
  own: readonly (readonly [string, string])[],
  isAllowed: (name: string) => boolean,
  target: TargetPaths,
): readonly ReadyTemplate[] | null {
  if (templates === undefined || templates.length === 0) return null;
  const taken = new Set(own.map(([name]) => name));
  return readyTemplates(templates, target).filter(({ name }) => isAllowed(name) && !taken.has(name));
}

/** If a template of one of these has no value, the header is that of the event or of Posthorn: receivers need it to parse the payload or to identify the sender. */
const neverMissing: ReadonlySet<string> = new Set([...payloadHeaders, 'user-agent']);

/** The headers of a destination for one attempt. An event header does not replace a templated one without a value. */
export function withTemplates(
  headers: DestinationHeaders,
  templates: readonly ReadyTemplate[],
  message: TemplatedMessage,
): DestinationHeaders {
  const made = templatedHeaders(templates, message);
  const withheld = templates.flatMap(({ name }) => (neverMissing.has(name) ? [] : [name]));
  const names = new Set([...headers.names, ...withheld, ...made.map(([name]) => name)]);
  return { ...headers, own: [...headers.own, ...made], names };
}
