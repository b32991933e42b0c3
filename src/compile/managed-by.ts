/** Stored reference of a webhook record to its custom resource, so that the API can name it. */
export function managedBy({ namespace, name }: { namespace?: string; name: string }): string {
  return `${namespace ?? ''}/${name}`;
}
