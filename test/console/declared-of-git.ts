import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** What the manifests of the suites declare; standalone applies them with the field manager `posthorn-manifests`. */
export const ofGit = {
  destination: 'dst_aaaaaaaaaaaaaaaaaaaaaaaaaa',
  channel: 'nch_aaaaaaaaaaaaaaaaaaaaaaaaaa',
} as const;

/** The organization in which nothing is. */
export const bare = 'bare';

/** Arguments of a standalone that has them, the destination with this name. */
export function manifestsOfGit({ name = 'By Git', url = 'https://hooks.example.com/in' }: { name?: string; url?: string } = {}): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-manifests-'));
  const object = (kind: string, slug: string, id: string, spec: object): string =>
    stringify({
      apiVersion: 'posthorn.dev/v1alpha1',
      kind,
      metadata: { name: slug, namespace: 'default', annotations: { 'posthorn.dev/id': id } },
      spec,
    });
  const headers = [{ name: 'x-team', value: 'shop' }];
  const documents = [
    stringify({ apiVersion: 'posthorn.dev/v1alpha1', kind: 'Organization', metadata: { name: bare }, spec: { namespace: bare } }),
    object('Destination', 'by-git', ofGit.destination, { name, type: 'http', enabled: true, http: { url, headers } }),
    object('NotificationChannel', 'mail', ofGit.channel, { name: 'Mail', type: 'email', email: { addresses: ['ops@example.com'] } }),
  ];
  writeFileSync(join(directory, 'of-git.yaml'), documents.join('---\n'));
  return ['--manifests', directory];
}
