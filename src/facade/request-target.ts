/** Path and query of what a request asks for. Clients of proxies name the whole URL. */
export function requestTarget(url: string): { path: string; query: string } {
  const target = url.startsWith('/') ? url : pathOfUrl(url);
  const [, path = '', query = ''] = targetPattern.exec(target) ?? [];
  return { path, query };
}

const targetPattern = /^([^?#]*)(?:\?([^#]*))?/;

function pathOfUrl(url: string): string {
  const parsed = URL.parse(url);
  return parsed === null ? '' : parsed.pathname + parsed.search;
}
