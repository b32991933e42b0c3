import { urlProblem } from '../core/url-problem.ts';
import { httpsUrl } from './url.ts';

/** Prefix of the URL of an incoming webhook. */
const prefixes = { slack: 'https://hooks.slack.com/', discord: 'https://discord.com/api/webhooks/', teams: 'https://' } as const;

export type WebhookService = keyof typeof prefixes;

/** Error of the URL of an incoming webhook; null: none. The URL itself, a credential, is not repeated. */
export function webhookUrlProblem(service: WebhookService, url: string): string | null {
  // Scheme and host have any case (RFC 3986, section 6.2.2.1).
  const withLowerOrigin = url.replace(/^https:\/\/[^/?#]*/i, (origin) => origin.toLowerCase());
  if (!withLowerOrigin.startsWith(prefixes[service])) return `must start with ${prefixes[service]}`;
  const { success, error } = httpsUrl.safeParse(url);
  if (!success) return error.issues[0]?.message ?? 'is not a URL';
  return urlProblem(url);
}
