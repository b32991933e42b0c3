import type { z } from 'zod';

export const group = 'posthorn.dev';
export const version = 'v1alpha1';
export const apiVersion = `${group}/${version}` as const;

/**
 * A cross-field rule that the API server (CEL) and the zod side (`check`) must judge alike; the table in
 * `test/apiserver` holds them to it. `at` is the property path below `spec` whose schema carries the rule ('' = spec);
 * `self` in `cel` is the value there. With `transition`, `check` and `cel` see `oldSelf` too and run on updates only.
 */
export interface Rule {
  at: string;
  cel: string;
  message: string;
  /** JSON path relative to `at` that the complaint names, such as `.http`. */
  fieldPath?: string;
  transition?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the value at `at`; each kind's file narrows it
  check(self: any, oldSelf?: any): boolean;
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
  /** Prefix of API ids, with the underscore. */
  idPrefix: string;
  spec: Spec;
  status: Status;
  rules: readonly Rule[];
  printerColumns: readonly PrinterColumn[];
}

export function defineKind<Spec extends z.ZodObject, Status extends z.ZodObject>(
  definition: KindDefinition<Spec, Status>,
): KindDefinition<Spec, Status> {
  return definition;
}
