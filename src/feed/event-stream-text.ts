/** The form of Server-Sent Events (HTML standard, section 9.2). Data is JSON of one line. */

export function rowText({ type, json }: { type: string; json: string }, id: string): string {
  return `event: ${type}\nid: ${id}\ndata: ${json}\n\n`;
}

/** An event of the stream itself. Without an id the client keeps its position. */
export function controlText(type: 'reset' | 'skipped' | 'reconnect' | 'revoked', data: object, id?: string): string {
  return `event: ${type}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}
