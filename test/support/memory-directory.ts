import type { EndpointDisabling, EndpointToDisable } from '../../src/data/webhooks/disable-endpoint.ts';
import { targetChange, webhookChangeKey } from '../../src/data/webhooks/webhook-notes.ts';
import type { WebhookApplication, WebhookEndpoint } from '../../src/data/webhooks/webhooks.ts';
import type { WebhookPlanSources } from '../../src/delivery/plans/webhook-plan.ts';

const org = 'org_a';

/** Applications and endpoints of one organization in memory, for tests of their readers. Changes notify the listeners. */
export class MemoryDirectory {
  readonly #applications = new Map<string, WebhookApplication>();
  readonly #endpoints = new Map<string, WebhookEndpoint>();
  readonly #listeners = new Set<(changeKey: string) => void>();
  /** Why endpoints were disabled. */
  readonly reasons: string[] = [];

  putApplication(application: WebhookApplication): void {
    this.#applications.set(application.id, application);
    this.#changed(application.id, null);
  }

  /** The same while nobody followed the changes: listeners assume that any was missed. */
  putUnseen(application: WebhookApplication): void {
    this.#applications.set(application.id, application);
    this.#tell('*');
  }

  putEndpoint(endpoint: WebhookEndpoint): void {
    this.#endpoints.set(endpoint.id, endpoint);
    this.#changed(endpoint.applicationId, endpoint.id);
  }

  removeEndpoint(id: string): void {
    const applicationId = this.#endpoints.get(id)?.applicationId ?? '';
    this.#endpoints.delete(id);
    this.#changed(applicationId, id);
  }

  async endpoint(organization: string, id: string): Promise<WebhookEndpoint | null> {
    return (organization === org && this.#endpoints.get(id)) || null;
  }

  async application(organization: string, id: string): Promise<WebhookApplication | null> {
    return (organization === org && this.#applications.get(id)) || null;
  }

  onChange(listener: (changeKey: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** As a worker is given it. */
  sources(): WebhookPlanSources {
    const disableEndpoint = async ({ id, disabledReason }: EndpointToDisable): Promise<EndpointDisabling> => {
      this.reasons.push(disabledReason);
      const endpoint = this.#endpoints.get(id);
      if (endpoint !== undefined) this.putEndpoint({ ...endpoint, isDisabled: true, revision: endpoint.revision + 1 });
      return { isDone: endpoint !== undefined, revision: endpoint === undefined ? null : endpoint.revision + 1 };
    };
    return {
      directory: this,
      disableEndpoint,
      circuits: { ofTarget: async () => null },
      ownEvents: { note: async () => {} },
      disableAfterHours: 0,
      retries: { delaysMs: [] },
      allowsInsecureUrls: true,
    };
  }

  #changed(applicationId: string, endpointId: string | null): void {
    this.#tell(webhookChangeKey(targetChange({ org, applicationId, endpointId })));
  }

  #tell(changeKey: string): void {
    for (const listener of this.#listeners) listener(changeKey);
  }
}

export function webhookApplication(changes: Partial<WebhookApplication> = {}): WebhookApplication {
  return {
    id: 'app_a',
    org,
    externalId: null,
    name: 'shop',
    metadata: {},
    rateLimits: { perSecond: 1000, perMinute: 1000, perHour: 10_000 },
    isDisabled: false,
    disabledReason: null,
    disableAfterHours: null,
    shard: 0,
    createdAtMs: 1,
    updatedAtMs: 1,
    revision: 1,
    managedBy: null,
    ...changes,
  };
}

export function webhookEndpoint(changes: Partial<WebhookEndpoint> & Pick<WebhookEndpoint, 'url' | 'secret'>): WebhookEndpoint {
  return {
    id: 'ep_a',
    org,
    applicationId: 'app_a',
    description: null,
    headers: [],
    headerTemplates: [],
    timeoutSeconds: 30,
    rateLimitPerSecond: 0,
    rateLimitStrict: false,
    ordered: false,
    retryDelaysSeconds: null,
    expiresAfterSeconds: null,
    successStatusCodes: null,
    payloadForm: 'full',
    signatureScheme: 'hmac-sha256',
    signingKey: null,
    circuit: { failureThreshold: 1000, successThreshold: 2, cooldownSeconds: 60 },
    isDisabled: false,
    disabledReason: null,
    disableAfterHours: null,
    createdAtMs: 1,
    updatedAtMs: 1,
    revision: 1,
    managedBy: null,
    ...changes,
  };
}
