import { patternComplaint } from './structural-schema.ts';
import { text } from './text.ts';

// Patterns read alike by RE2 and JavaScript: no \s (Unicode in one, ASCII in the other), no look-around. A backslash is
// refused because URL parsers disagree about it; user info because credentials belong into Secrets.
const authority = String.raw`(\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f/?#@:\[\]\\]+)(:[0-9]{1,5})?`;
const rest = String.raw`([/?#][^\x00-\x20\x7f\\]*)?`;

/** Absolute http(s) URL. The compile step parses it for good: what only a URL parser can tell becomes a condition. */
export const httpUrl = urlOf('https?', 'must be an absolute http or https URL without user, password and spaces');

export const httpsUrl = urlOf('https', 'must be an absolute https URL without user, password and spaces');

function urlOf(scheme: string, complaint: string) {
  return text(1, 2048)
    .regex(new RegExp(`^${scheme}://${authority}${rest}$`), complaint)
    .meta({ [patternComplaint]: complaint });
}

export const bucketName = text(3, 63)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be letters, digits, dots, hyphens and underscores')
  .describe('Name of the bucket.');
