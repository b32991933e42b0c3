import type { z } from 'zod';

export const group = 'posthorn.dev';
export const version = 'v1alpha1';
export const apiVersion = `${group}/${version}` as const;

/**
 * A cross-field rule that the API server and the zod side (`check`) must judge alike; the table in `test/apiserver`
 * holds them to it. `at` is the property path below `spec` whose schema carries the rule ('' = spec, `a[].b` = `b` of
 * each item of `a`); `self` is the value there. Where `at` is absent from an object the rule does not apply.
 */
export type Rule = ExpressionRule | SchemaRule;

interface RuleBase {
  at: string;
  message: string;
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

export interface KindDefinition<Spec extends z.ZodObject = z.ZodObject, Status extends z.ZodObject = z.ZodObject> {
  kind: string;
  plural: string;
  singular: string;
  shortName: string;
  scope: 'Namespaced' | 'Cluster';
  description: string;
  /** Prefix of API ids, with the underscore; empty: the API has no ids of it. */
  idPrefix: string;
  spec: Spec;
  status: Status;
  rules: readonly Rule[];
  printerColumns: readonly PrinterColumn[];
  /** The scale subresource, for `kubectl scale`. */
  scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath: string };
}

export function defineKind<Spec extends z.ZodObject, Status extends z.ZodObject>(
  definition: KindDefinition<Spec, Status>,
): KindDefinition<Spec, Status> {
  return definition;
}
