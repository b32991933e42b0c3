/** Why no request can be sent to a URL; null: one can. The URL, which may hold a credential, is not repeated. */
export function urlProblem(url: string): string | null {
  const parsed = URL.parse(url);
  if (parsed === null) return 'is not a URL';
  return parsed.port === '0' ? 'has port 0, to which nothing connects' : null;
}

export function isUsableUrl(url: string): boolean {
  return urlProblem(url) === null;
}
