import type { IncomingMessage } from 'node:http';

/** Host, which is neither empty nor behind a user, and what follows it. */
const absoluteForm = /^https?:\/\/([^/?#@\s]+)([/?].*)?$/i;

/**
 * Gives a request whose target is in absolute form, as clients of proxies send it, a target in origin form. The host in the target takes the place of
 * the `Host` header (RFC 9112, section 3.2.2). The text of path and query is kept: signatures cover it. Other targets stay.
 */
export function toOriginForm(request: IncomingMessage): void {
  const target = request.url ?? '';
  if (target.startsWith('/')) return;
  const [, host, rest = '/'] = absoluteForm.exec(target) ?? [];
  if (host === undefined) return;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  request.headers.host = host;
}
