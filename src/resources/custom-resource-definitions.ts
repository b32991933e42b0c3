import { Document } from 'yaml';
import { group, type KindDefinition, version } from './definition.ts';
import { kinds, type PosthornKind, posthornKinds } from './kinds.ts';
import { nameRules } from './names.ts';
import { specTrees } from './references.ts';
import { addRules, type StructuralSchema, structuralSchema } from './structural-schema.ts';

/** A CustomResourceDefinition of apiextensions.k8s.io/v1, as far as Posthorn's have it. */
export interface CustomResourceDefinition {
  apiVersion: 'apiextensions.k8s.io/v1';
  kind: 'CustomResourceDefinition';
  metadata: { name: string };
  spec: Record<string, unknown>;
}

/** The CRD of a kind: its zod schemas as structural schema, its rules as CEL, its printer columns and selectable fields. */
export function crdFor(kind: PosthornKind): CustomResourceDefinition {
  const definition: KindDefinition = kinds[kind];
  const { plural, singular, shortName, scope, printerColumns, scale } = definition;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: { kind, listKind: `${kind}List`, plural, singular, shortNames: [shortName], categories: ['posthorn'] },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {}, ...(scale !== undefined && { scale }) },
          additionalPrinterColumns: printerColumns,
          selectableFields: selectableFieldsOf(kind).map((jsonPath) => ({ jsonPath })),
          schema: { openAPIV3Schema: objectSchemaOf(kind) },
        },
      ],
    },
  };
}

function objectSchema(kind: PosthornKind, definition: KindDefinition): StructuralSchema {
  const spec = structuralSchema(definition.spec);
  addRules(spec, definition.rules);
  const names = nameRules.filter((rule) => rule.appliesTo(kind));
  return {
    description: definition.description,
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { description: `${group}/${version}.`, type: 'string' },
      kind: { description: `${kind}.`, type: 'string' },
      metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 253 } } },
      spec: { description: `What is wanted. ${definition.description}`, ...spec },
      status: { description: 'Status as observed by the controller, which alone writes it.', ...structuralSchema(definition.status) },
    },
    'x-kubernetes-validations': names.map(({ cel, message }) => ({ rule: cel, message, fieldPath: '.metadata.name' })),
  };
}

/** Fields of a version, at most; the API server refuses more. */
export const maxSelectableFields = 8;

/**
 * Fields that `kubectl get --field-selector` takes, with a dot before them: the id of the REST API, the name in each reference to one object at the top of the spec,
 * and the texts and switches that `kubectl get` shows. Kubernetes allows none in lists, so none of a condition or a list of references.
 */
export function selectableFieldsOf(kind: PosthornKind): string[] {
  const { printerColumns, status }: KindDefinition = kinds[kind];
  const shown = printerColumns.filter(({ type, jsonPath }) => (type === 'string' || type === 'boolean') && !jsonPath.includes('['));
  const spec = specTrees[kind];
  const fields = spec.type === 'object' ? [...spec.fields] : [];
  const named = fields.flatMap(([name, field]) => (field.type === 'object' && field.refersTo !== undefined ? [`.spec.${name}.name`] : []));
  return [...new Set([...('id' in status.shape ? ['.status.id'] : []), ...named, ...shown.map(({ jsonPath }) => jsonPath)])];
}

/** Validation of the API server for the kind. */
export function objectSchemaOf(kind: PosthornKind): StructuralSchema {
  return objectSchema(kind, kinds[kind]);
}

/** The CRDs of all kinds. */
export function allCrds(): CustomResourceDefinition[] {
  return posthornKinds.map(crdFor);
}

/**
 * A CRD as YAML, in one way only: the files of `crds/` and the output of `posthorn crds` are the same text. Texts that
 * YAML 1.1 takes for something else, such as `off`, are quoted: kubectl reads YAML 1.1.
 */
export function crdYaml(crd: CustomResourceDefinition): string {
  return new Document(crd, { aliasDuplicateObjects: false, schema: 'yaml-1.1' }).toString({ lineWidth: 0 });
}
