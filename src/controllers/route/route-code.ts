import type { Refusal } from '../../compile/compiled.ts';
import type { OrganizationFacts } from '../../compile/organization.ts';
import { compilePayloadSchema } from '../../compile/payload-schema.ts';
import { compileTransform } from '../../compile/transform.ts';
import type { PosthornObject, SpecOf } from '../../resources/kinds.ts';
import type { CodeChecks } from '../code-checks.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import type { FencedPublisher } from '../fenced-publisher.ts';
import { idOf, referenced } from '../references.ts';

export interface RouteCodeOptions {
  caches: ControllerCaches;
  publisher: FencedPublisher;
  checks: CodeChecks;
}

/** The id of what a route refers to, null without a reference; or what stands in its way. */
export type Resolved = { id: string | null; unresolved?: undefined } | { id?: undefined; unresolved: Refusal };

/** The transform and the schema of a route. Their records are published before the route that names them. */
export class RouteCode {
  readonly #caches: ControllerCaches;
  readonly #publisher: FencedPublisher;
  readonly #checks: CodeChecks;

  constructor({ caches, publisher, checks }: RouteCodeOptions) {
    this.#caches = caches;
    this.#publisher = publisher;
    this.#checks = checks;
  }

  /** Of a route, or of a subscription. */
  async transform({ spec }: { spec: Pick<SpecOf<'Route'>, 'transformRef'> }, organization: OrganizationFacts): Promise<Resolved> {
    if (spec.transformRef === undefined) return { id: null };
    const { name } = spec.transformRef;
    const object = referenced(this.#caches, this.#caches.Transform, { namespace: organization.namespace, name });
    if (object === undefined) return missing('Transform', name);
    const refusal = await this.#checks.transform(object, organization);
    if (refusal !== null) return notAccepted('Transform', name, refusal);
    const id = idOf('Transform', object);
    const published = await this.#publisher.get('transform', id);
    if (isOlder(published, object)) await this.#publisher.publish('transform', compileTransform(object, organization));
    return { id };
  }

  async schema({ spec }: PosthornObject<'Route'>, organization: OrganizationFacts): Promise<Resolved> {
    if (spec.schemaRef === undefined) return { id: null };
    const { name } = spec.schemaRef;
    const object = referenced(this.#caches, this.#caches.PayloadSchema, { namespace: organization.namespace, name });
    if (object === undefined) return missing('PayloadSchema', name);
    const { jsonSchema, refusal } = await this.#checks.schema(object, organization);
    if (refusal !== undefined) return notAccepted('PayloadSchema', name, refusal);
    const id = idOf('PayloadSchema', object);
    const published = await this.#publisher.get('payloadSchema', id);
    if (isOlder(published, object))
      await this.#publisher.publish('payloadSchema', compilePayloadSchema(object, { organization, jsonSchema, published }));
    return { id };
  }
}

function isOlder(published: { generation: number } | null, { metadata }: { metadata: { generation: number } }): boolean {
  return published === null || published.generation < metadata.generation;
}

function missing(kind: 'Transform' | 'PayloadSchema', name: string): Resolved {
  return { unresolved: { reason: `${kind}NotFound`, message: `${kind} ${name} does not exist` } };
}

function notAccepted(kind: 'Transform' | 'PayloadSchema', name: string, { message }: Refusal): Resolved {
  return { unresolved: { reason: `${kind}NotAccepted`, message: `${kind} ${name}: ${message}` } };
}
