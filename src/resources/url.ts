import { text } from './text.ts';

// Patterns read alike by RE2 and JavaScript: no \s (Unicode in one, ASCII in the other), no look-around. A backslash is
// refused because URL parsers disagree about it; user info because credentials belong into Secrets. What they take in
// ASCII a URL parser takes, too. Addresses have one spelling: not all read 127.1 or 010.0.0.1 alike. Schemes have any case.
const labelCharacter = String.raw`[^\x00-\x2c\x2e\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\xa0]`;
/** Neither digits alone nor 0x…: those would make the name an address. */
const lastLabel = String.raw`([0-9]*[^\x00-\x2c\x2e-\x40X\x5b-\x5e\x60x\x7b-\xa0]|([1-9][0-9]*)?[Xx])${labelCharacter}*`;
const name = String.raw`(${labelCharacter}+\.)*${lastLabel}\.?`;

const octet = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const ipv4 = String.raw`${octet}(\.${octet}){3}`;

const group = '[0-9A-Fa-f]{1,4}';
const shortened = [1, 2, 3, 4, 5, 6].map((after) => `(${group}:){1,${7 - after}}(:${group}){1,${after}}`);
const ipv6 = [`(${group}:){7}${group}`, `(${group}:){1,7}:`, ...shortened, `:((:${group}){1,7}|:)`].join('|');

/** 1 to 65535, with up to four zeros in front. */
const port =
  '(0{0,4}[1-9]|0{0,3}[1-9][0-9]|0{0,2}[1-9][0-9]{2}|0?[1-9][0-9]{3}|[1-5][0-9]{4}|6([0-4][0-9]{3}|5([0-4][0-9]{2}|5([0-2][0-9]|3[0-5]))))';
const authority = String.raw`(${ipv4}|${name}|\[(${ipv6})\])(:${port})?`;
const rest = String.raw`([/?#][^\x00-\x20\x7f\\]*)?`;

/**
 * Absolute http(s) URL. Its user parses it fully: only a URL parser can determine which names beyond ASCII are possible. The facade
 * refuses the others, and of a custom resource they become a condition.
 */
export const httpUrl = urlOf('[Hh][Tt][Tt][Pp][Ss]?', 'must be an absolute http or https URL without user, password, spaces and port 0');

export const httpsUrl = urlOf('[Hh][Tt][Tt][Pp][Ss]', 'must be an absolute https URL without user, password, spaces and port 0');

function urlOf(scheme: string, complaint: string) {
  return text(1, 2048).regex(new RegExp(`^${scheme}://${authority}${rest}$`), complaint);
}

export const bucketName = text(3, 63)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'must be letters, digits, dots, hyphens and underscores')
  .describe('Name of the bucket.');
