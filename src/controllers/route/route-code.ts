import { isDeepStrictEqual } from 'node:util';
import type { Refusal } from '../../compile/compiled.ts';
import type { OrganizationFacts } from '../../compile/organization.ts';
import { compilePayloadSchema } from '../../compile/payload-schema.ts';
import { compileTransform } from '../../compile/transform.ts';
import type { RecordByKind } from '../../core/records.ts';
import type { ObjectOf, PosthornObject, SpecOf } from '../../resources/kinds.ts';
import type { ContentOf } from '../../resources/sharing.ts';
import type { ResourceCache } from '../../store/cache.ts';
import type { CodeChecks } from '../code-checks.ts';
import type { ControllerCaches } from '../controller-caches.ts';
import type { FencedPublisher } from '../fenced-publisher.ts';
import { idOf, referenced } from '../held-ids.ts';
import { contentOf } from '../shared-content.ts';

export interface RouteCodeOptions {
  caches: ControllerCaches;
  publisher: FencedPublisher;
  checks: CodeChecks;
}

/** The id of a reference of a route, null without a reference; or the obstacle. */
export type Resolved = { id: string | null; unresolved?: undefined } | { id?: undefined; unresolved: Refusal };

type CodeKind = 'Transform' | 'PayloadSchema';

/** How the record of a kind is made. */
interface Making<K extends CodeKind, R extends 'transform' | 'payloadSchema'> {
  cache: ResourceCache<K>;
  recordKind: R;
  /** Compiles `content` into a record, or refuses it. `published` is the present record; null: there is none. */
  compile(
    object: ObjectOf<K>,
    content: ContentOf<K>,
    organization: OrganizationFacts,
    published: RecordByKind[R] | null,
  ): Promise<{ record: RecordByKind[R]; refusal?: undefined } | { record?: undefined; refusal: Refusal }>;
}

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

  /** Returns the transform of a route, or of a subscription. */
  transform({ spec }: { spec: Pick<SpecOf<'Route'>, 'transformRef'> }, organization: OrganizationFacts): Promise<Resolved> {
    return this.#resolved(spec.transformRef?.name, organization, {
      cache: this.#caches.Transform,
      recordKind: 'transform',
      compile: async (object, content) => {
        const refusal = await this.#checks.transform(content, organization);
        return refusal === null ? { record: compileTransform(object, content, organization) } : { refusal };
      },
    });
  }

  schema({ spec }: PosthornObject<'Route'>, organization: OrganizationFacts): Promise<Resolved> {
    return this.#resolved(spec.schemaRef?.name, organization, {
      cache: this.#caches.PayloadSchema,
      recordKind: 'payloadSchema',
      compile: async (object, content, _, published) => {
        const { jsonSchema, refusal } = await this.#checks.schema(content, organization);
        return refusal === undefined ? { record: compilePayloadSchema(object, { organization, jsonSchema, published }) } : { refusal };
      },
    });
  }

  async #resolved<K extends CodeKind, R extends 'transform' | 'payloadSchema'>(
    name: string | undefined,
    organization: OrganizationFacts,
    { cache, recordKind, compile }: Making<K, R>,
  ): Promise<Resolved> {
    if (name === undefined) return { id: null };
    const { kind } = cache;
    const key = { namespace: organization.namespace, name };
    for (let isAgain = false; ; isAgain = true) {
      const object = referenced(this.#caches, cache, key);
      if (object === undefined) return { unresolved: { reason: `${kind}NotFound`, message: `${kind} ${name} does not exist` } };
      const found = contentOf(this.#caches, { kind, spec: object.spec }, organization);
      if (found.unresolved !== undefined)
        return { unresolved: { reason: `${kind}NotReady`, message: `${kind} ${name}: ${found.unresolved.message}` } };
      const id = idOf(kind, object);
      const published = await this.#publisher.get(recordKind, id);
      const { record, refusal } = await compile(object, found.content, organization, published);
      if (refusal !== undefined) return { unresolved: { reason: `${kind}NotAccepted`, message: `${kind} ${name}: ${refusal.message}` } };
      if (!isAgain && published !== null && published.generation >= object.metadata.generation) return { id };
      await this.#publisher.publish(recordKind, record);
      // What was withdrawn or changed meanwhile has been retracted or published already, and this publication came after it.
      const now = referenced(this.#caches, cache, key);
      if (now === undefined) return { id };
      const { content } = contentOf(this.#caches, { kind, spec: now.spec }, organization);
      if (isDeepStrictEqual(content, found.content)) return { id };
      if (content === undefined) await this.#publisher.retract(recordKind, id, organization.id);
    }
  }
}
