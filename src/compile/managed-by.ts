/** What the webhook store keeps of the custom resource that a record comes from, so that the API can name it. */
export function managedBy({ namespace, name }: { namespace?: string; name: string }): string {
  return `${namespace ?? ''}/${name}`;
}
