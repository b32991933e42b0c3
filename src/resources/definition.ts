import type { z } from 'zod';
import type { RecordKind } from '../core/records.ts';

export const group = 'posthorn.dev';
export const version = 'v1alpha1';
export const apiVersion = `${group}/${version}` as const;

/**
 * A cross-field rule that the API server and the zod side (`check`) must evaluate alike; the table in `test/apiserver`
 * holds them to it. `at` is the property path below `spec` whose schema carries the rule ('' = spec, `a[].b` = `b` of
 * each item of `a`); `self` is the value there. Where `at` is absent from an object the rule does not apply.
 */
export type Rule = ExpressionRule | SchemaRule;

interface RuleBase {
  at: string;
  message: string;
  /**
   * Values that the object already has are not checked again: older releases may have accepted them. The API server does so with every rule whose value is
   * unchanged. Default: false.
   */
  sparesStored?: true;
  // biome-ignore lint/suspicious/noExplicitAny: the value at `at`; each kind's file narrows it
  check(self: any, oldSelf?: any): boolean;
}

/** A rule that the CRD carries as CEL. */
export interface ExpressionRule extends RuleBase {
  cel: string;
  /** JSON path relative to `at` that the complaint names, such as `.http`. */
  fieldPath?: string;
  /** `check` and `cel` see `oldSelf` too and run on updates only. `at` must not lead through a list. */
  transition?: boolean;
}

/** A rule about a field of any type, which CEL cannot see: the CRD carries it as further JSON schema keywords. */
export interface SchemaRule extends RuleBase {
  schema: Readonly<Record<string, unknown>>;
  fieldPath?: string;
  transition?: false;
}

export interface PrinterColumn {
  name: string;
  type: 'string' | 'integer' | 'boolean' | 'date';
  jsonPath: string;
  description?: string;
  /** 1: only with `-o wide`. */
  priority?: 1;
}

/** A method, so that the definition of one kind is one of `KindDefinition`. */
interface SpecFunction<Spec, Result> {
  of(spec: Spec): Result;
}

/**
 * Everything that others need of a kind without its code. Work queues, caches with their indexes, what a change requeues, retraction, sweeps,
 * messages of the API, RBAC rules, CRDs and documentation are derived from it; references to objects are in its schema (`reference`).
 */
export interface KindDefinition<
  Spec extends z.ZodObject = z.ZodObject,
  Status extends z.ZodObject = z.ZodObject,
  World extends 'both' | 'cluster' = 'both' | 'cluster',
  Served extends boolean = boolean,
  Stored extends RecordKind | null = RecordKind | null,
> {
  kind: string;
  plural: string;
  singular: string;
  shortName: string;
  scope: 'Namespaced' | 'Cluster';
  description: string;
  /** Prefix of API ids, with the underscore; empty: the API has no ids of it. */
  idPrefix: string;
  /** Noun in messages of the API. */
  noun: string;
  /** `both`: it defines deliveries, and has a reconciler in `src/controllers/reconcilers.ts`; `cluster`: it configures how a cluster runs Posthorn. */
  world: World;
  /** Whether the API serves this kind. The API reads its custom resources from a cache. */
  isServed: Served;
  /** Its record in the registry; null: it has none there. */
  recordKind: Stored;
  /** Kind in the webhook store, where its records are; absent: they are not there. */
  webhookKind?: 'application' | 'endpoint' | 'subscription';
  /** How many objects are reconciled at a time: enough to keep the API server busy, few enough to leave it to others. */
  workers: number;
  /** Messages come in through it: its records are retracted before all others. */
  isIntake?: true;
  /** Referrers depend on its spec, too: each new generation requeues them. */
  referrersReadSpec?: true;
  /** The namespace that it is the organization of, and in which its references lead; absent: it is in that namespace itself. */
  namespaceIn?: SpecFunction<z.output<Spec>, string>['of'];
  /** Values other than the names of references by which controllers find its objects in a namespace, by the name of the index. */
  indexes?: Readonly<Record<string, SpecFunction<z.output<Spec>, readonly string[]>['of']>>;
  /** Others than its reconciler write a part of its status: it has circuits, runs, e-mails or an archive. */
  hasSharedStatus?: true;
  /** Only the admins among the users of a namespace may read and write it. */
  isForAdmins?: true;
  spec: Spec;
  status: Status;
  rules: readonly Rule[];
  printerColumns: readonly PrinterColumn[];
  /** The scale subresource, for `kubectl scale`. */
  scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath: string };
}

export function defineKind<
  Spec extends z.ZodObject,
  Status extends z.ZodObject,
  World extends 'both' | 'cluster',
  Served extends boolean,
  Stored extends RecordKind | null,
>(definition: KindDefinition<Spec, Status, World, Served, Stored>): KindDefinition<Spec, Status, World, Served, Stored> {
  return definition;
}
