const text = { type: 'string' };
const wholeNumber = { type: 'integer', format: 'int32' };

/** As KEDA has it, with the fields that we set: others would be refused. */
export const scaledObjects = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'scaledobjects.keda.sh' },
  spec: {
    group: 'keda.sh',
    scope: 'Namespaced',
    names: { kind: 'ScaledObject', listKind: 'ScaledObjectList', plural: 'scaledobjects', singular: 'scaledobject' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['scaleTargetRef', 'triggers'],
                properties: {
                  scaleTargetRef: { type: 'object', required: ['name'], properties: { apiVersion: text, kind: text, name: text } },
                  minReplicaCount: wholeNumber,
                  maxReplicaCount: wholeNumber,
                  triggers: {
                    type: 'array',
                    items: {
                      type: 'object',
                      required: ['type', 'metadata'],
                      properties: { type: text, metricType: text, metadata: { type: 'object', additionalProperties: text } },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};
