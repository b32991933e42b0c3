import { createHash, randomBytes } from 'node:crypto';
import type { Manifest } from './world.ts';

const apiVersion = 'posthorn.dev/v1alpha1';

/** The names and secrets of one organization with a GitHub source, and the manifests of what it has. */
export class Shop {
  readonly name: string;
  readonly githubSecret = randomBytes(20).toString('hex');
  readonly signingSecret = `whsec_${randomBytes(32).toString('base64')}`;
  readonly apiKey = `ph_${randomBytes(32).toString('base64url')}`;

  constructor(name: string) {
    this.name = name;
  }

  /** `allowedCidrs`: where its receivers are. */
  organization(allowedCidrs: readonly string[], installation = 'default'): Manifest {
    return {
      apiVersion,
      kind: 'Organization',
      metadata: { name: this.name },
      spec: { namespace: this.name, installation, egress: { allowedCidrs }, deletionPolicy: 'Delete' },
    };
  }

  get namespace(): Manifest {
    return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: this.name } };
  }

  get secrets(): Manifest[] {
    return [
      { apiVersion: 'v1', kind: 'Secret', metadata: this.#named('github'), stringData: { secret: this.githubSecret } },
      { apiVersion: 'v1', kind: 'Secret', metadata: this.#named('signing'), stringData: { secret: this.signingSecret } },
    ];
  }

  get apiKeyManifest(): Manifest {
    const sha256 = createHash('sha256').update(this.apiKey).digest('hex');
    return { apiVersion, kind: 'ApiKey', metadata: this.#named('e2e'), spec: { sha256, role: 'admin' } };
  }

  get source(): Manifest {
    const spec = { provider: 'github', signingSecretRef: { name: 'github', key: 'secret' } };
    return { apiVersion, kind: 'Source', metadata: this.#named('github'), spec };
  }

  destination(name: string, url: string): Manifest {
    const spec = {
      type: 'http',
      http: { url, signingSecretRef: { name: 'signing', key: 'secret' } },
      retryPolicy: { initialDelayMs: 200, maxDelayMs: 1000, backoffMultiplier: 2 },
    };
    return { apiVersion, kind: 'Destination', metadata: this.#named(name), spec };
  }

  route(name: string, destination: string, onlyEvents?: readonly string[]): Manifest {
    const filter =
      onlyEvents === undefined ? {} : { filter: { conditions: [{ field: 'headers.X-GitHub-Event', operator: 'in', value: onlyEvents }] } };
    return {
      apiVersion,
      kind: 'Route',
      metadata: this.#named(name),
      spec: { sourceRef: { name: 'github' }, destinationRefs: [{ name: destination }], ...filter },
    };
  }

  #named(name: string): { name: string; namespace: string } {
    return { name, namespace: this.name };
  }
}
