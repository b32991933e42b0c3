/** Path and query of a target in origin form. */
export function requestTarget(target: string): { path: string; query: string } {
  const [, path = '', query = ''] = targetPattern.exec(target) ?? [];
  return { path, query };
}

const targetPattern = /^([^?#]*)(?:\?([^#]*))?/;
