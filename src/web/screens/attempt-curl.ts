import { shellQuoted } from '../ui/shell-text.ts';

/** Where a target receives requests now, and what reads the payload of the event. */
export interface SentTo {
  method: string;
  url: string;
  /** Writes the payload to the file `payload`. */
  payloadCommand: string;
}

/** curl makes these itself. */
const madeByCurl = new Set(['host', 'content-length', 'connection', 'transfer-encoding', 'accept-encoding', 'keep-alive']);

/** The request of an attempt as commands of a POSIX shell, with the headers as they were sent. */
export function attemptCurl(headers: Readonly<Record<string, string>>, { method, url, payloadCommand }: SentTo): string {
  const sent = Object.entries(headers).filter(([name]) => !madeByCurl.has(name.toLowerCase()));
  const isMasked = sent.some(([, value]) => value.includes('••••'));
  return [
    '# The payload of the event. A transform or the thin form sends another body.',
    ...(isMasked ? ['# Values with •••• are masked: write the real ones.'] : []),
    payloadCommand,
    `curl -X ${method} ${shellQuoted(url)} \\`,
    ...sent.map(([name, value]) => `  -H ${shellQuoted(`${name}: ${value}`)} \\`),
    '  --data-binary @payload',
  ].join('\n');
}
