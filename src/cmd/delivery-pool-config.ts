import { z } from 'zod';
import type { PoolDefaults } from '../compile/delivery-pool/pool-setting.ts';
import { readJson } from '../core/read-json.ts';
import { splitList } from './config-values.ts';

const objectName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const mountPattern = /^(configmap|secret)\/([^=/]+)=(\/[^=,:]+)$/;

/** The platform assigns user and group. */
const platform = 'platform';

const maxUserId = 4_294_967_294;
const isUserId = (text: string): boolean => /^[1-9]\d{0,9}$/.test(text) && Number(text) <= maxUserId;

const names = z
  .string()
  .transform(splitList)
  .refine((list) => list.every((name) => name.length <= 253 && objectName.test(name)), 'must be names of objects separated by commas')
  .default([]);

const mounts = z
  .string()
  .transform((text) => splitList(text).map(parseMount))
  .refine((list) => list.every((mount) => mount !== null), 'must be configmap/<name>=<path> or secret/<name>=<path>, separated by commas')
  .transform((list) => list.filter((mount) => mount !== null))
  .default([]);

const peers = z
  .string()
  .transform((text, { addIssue }) => {
    const found = z.array(z.looseObject({})).safeParse(readJson(text));
    if (!found.success) addIssue({ code: 'custom', message: 'must be a JSON list of peers of a NetworkPolicy' });
    return found.data ?? [];
  })
  .default([]);

/** The controller's variables for the workers of every DeliveryPool. */
export const deliveryPoolEnvironment = {
  POSTHORN_IMAGE: z
    .string()
    .regex(/^\S{1,512}$/, 'must be the name of an image')
    .optional()
    .describe('Image of the workers of every DeliveryPool that names none: that of the controller itself.')
    .meta({ roles: ['controller'] }),
  POSTHORN_IMAGE_PULL_SECRETS: names
    .describe('Names of Secrets by which that image is pulled, separated by commas.')
    .meta({ roles: ['controller'] }),
  POSTHORN_DELIVERY_CONFIG_MAPS: names
    .describe(
      'Names of ConfigMaps in the namespace of the controller, separated by commas: their keys are the environment of the workers of every DeliveryPool. A later one goes before an earlier one.',
    )
    .meta({ roles: ['controller'] }),
  POSTHORN_DELIVERY_SECRETS: names
    .describe('The same for Secrets, which go before the ConfigMaps: `POSTHORN_REDIS_URL`, `POSTHORN_ENCRYPTION_KEYS` and the like.')
    .meta({ roles: ['controller'] }),
  POSTHORN_DELIVERY_MOUNTS: mounts
    .describe(
      'Files that the workers of every DeliveryPool get, such as certificates: `secret/<name>=<path>` or `configmap/<name>=<path>`, separated by commas.',
    )
    .meta({ roles: ['controller'] }),
  POSTHORN_DELIVERY_METRICS_FROM: peers
    .describe(
      'Who may reach `/metrics`, `/livez` and `/readyz` of the workers of every DeliveryPool, as a JSON list of peers of a NetworkPolicy. Default: everybody.',
    )
    .meta({ roles: ['controller'] }),
  POSTHORN_DELIVERY_RUN_AS_USER: z
    .string()
    .refine((text) => text === platform || isUserId(text), 'must be a user id other than 0, or platform')
    .transform((text) => (text === platform ? null : Number(text)))
    .default(1000)
    .describe(
      'User and group of the workers of every DeliveryPool; `platform`: the platform assigns them, as OpenShift does. Default: 1000.',
    )
    .meta({ roles: ['controller'] }),
};

/** The part of a configuration for DeliveryPools. */
export function poolDefaults(values: z.output<z.ZodObject<typeof deliveryPoolEnvironment>>): PoolDefaults {
  return {
    image: values.POSTHORN_IMAGE ?? null,
    imagePullSecrets: values.POSTHORN_IMAGE_PULL_SECRETS,
    configMaps: values.POSTHORN_DELIVERY_CONFIG_MAPS,
    secrets: values.POSTHORN_DELIVERY_SECRETS,
    mounts: values.POSTHORN_DELIVERY_MOUNTS,
    user: values.POSTHORN_DELIVERY_RUN_AS_USER,
    metricsFrom: values.POSTHORN_DELIVERY_METRICS_FROM,
  };
}

function parseMount(text: string): PoolDefaults['mounts'][number] | null {
  const [, kind, name = '', path = ''] = mountPattern.exec(text) ?? [];
  if (!objectName.test(name)) return null;
  return { kind: kind === 'secret' ? 'Secret' : 'ConfigMap', name, path };
}
