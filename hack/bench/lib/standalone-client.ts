import { eventually } from '../../../test/support/eventually.ts';

/** A manifest of Posthorn as text. `namespace` undefined: of an Organization. */
export function manifest(kind: string, name: string, spec: object, namespace?: string): string {
  return JSON.stringify({
    apiVersion: 'posthorn.dev/v1alpha1',
    kind,
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    spec,
  });
}

/** Creates resources by the REST API of a standalone program with one API key. */
export class StandaloneClient {
  readonly #origin: string;
  readonly #key: string;

  constructor(origin: string, key: string) {
    this.#origin = origin;
    this.#key = key;
  }

  /** Returns the id. `path`: behind `/api/`. */
  async create(path: string, body: object): Promise<string> {
    return await eventually(`${path} to be taken`, 60_000, async () => {
      const headers = { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' };
      const answer = await fetch(`${this.#origin}/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
      return ((await answer.json()) as { data: { id: string } }).data.id;
    });
  }

  /** Creates endpoints with a subscription each to events of this type. */
  async subscribe(type: string, endpoints: number, url: string, filter?: (i: number) => string): Promise<void> {
    await this.create('event-types', { name: type });
    let applicationId = '';
    for (let i = 0; i < endpoints; i++) {
      if (i % 25 === 0) applicationId = await this.create('webhook-applications', { name: `Customer ${i}` });
      const endpointId = await this.create('webhook-endpoints', { applicationId, url });
      const filterExpression = filter === undefined ? {} : { filterExpression: filter(i) };
      await this.create('webhook-subscriptions', { endpointId, eventTypeId: type, ...filterExpression });
    }
  }
}
