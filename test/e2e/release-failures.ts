import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { crdFor } from '../../src/resources/custom-resource-definitions.ts';
import { eventually } from '../support/eventually.ts';
import { helm } from '../support/helm.ts';
import { ask, conditionIs, delivers, inShop, pods, poolless, poolOf, putInPool, removePool, shop } from './broken-installation.ts';
import { type Failures, failing, notReady } from './failure.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import {
  areReady,
  inSystem,
  patience,
  patienceMs,
  putSecret,
  releaseRevision,
  restart,
  rolledOut,
  secretValue,
  system,
  upgrade,
  upgradeFails,
} from './system-commands.ts';

/** Failures of values, keys, and controllers of a release. */

const nothing = async (): Promise<void> => {};
const keyring = { secret: 'posthorn-encryption', key: 'POSTHORN_ENCRYPTION_KEYS' };
const sealing = ['posthorn-api', 'posthorn-controller'];
let encryptionKeys: string;
/** The revision of the release to roll back to. */
let revision: string;
/** Helm refuses these values with this message, and nothing changes. */
const refusing = (...cases: [values: string, message: RegExp][]) => ({
  make: nothing,
  mend: nothing,
  kubectl: async () => {
    const state = async (): Promise<string[]> => [
      await releaseRevision(),
      await inSystem('get', 'deployments,statefulsets', '-o', 'jsonpath={.items[*].metadata.generation}'),
    ];
    const before = await state();
    for (const [values] of cases) await expect(upgrade('--set', values)).rejects.toThrow();
    expect(await state()).toEqual(before);
  },
  helm: async () => {
    for (const [values, message] of cases) await expect(upgrade('--set', values)).rejects.toThrow(message);
  },
});

const otherVersion = '0.1.9';
/** An environment variable that sets the clock of a process ahead. */
const clockAhead = (seconds: number) => {
  const program = encodeURIComponent(`const now=Date.now;Date.now=()=>now()+${seconds * 1000}`);
  return { name: 'NODE_OPTIONS', value: `--import=data:text/javascript,${program}` };
};
/** Starts controllers of another version. The earlier ones keep running. */
async function newControllers(): Promise<void> {
  const file = new URL('../../package.json', import.meta.url);
  const data = { 'package.json': JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), version: otherVersion }) };
  await kubectlApply([{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other-version', namespace: system }, data }]);
  const values = {
    extraVolumes: [{ name: 'version', configMap: { name: 'other-version' } }],
    extraVolumeMounts: [{ name: 'version', mountPath: '/app/package.json', subPath: 'package.json' }],
  };
  const set = Object.entries(values).flatMap(([name, value]) => ['--set-json', `controller.${name}=${JSON.stringify(value)}`]);
  await upgrade('--set', 'crds.install=false', ...set);
}
/** The new pods do not become ready. */
const controllersDoNotRoll = (): Promise<void> => upgradeFails();

/** The release of the new controllers does not bring its CustomResourceDefinitions. They are therefore not ready, and do not replace the earlier controllers. */
export const releaseFailures = {
  'values are refused': refusing(['delivery.replicas=-1', /replicas/], ['organization.slug=No Slug', /slug/]),
  'values name a Secret that does not exist': refusing(['redis.tls.caSecret=nowhere', /redis\.tls\.caSecret names the Secret nowhere/]),
  'an encryption key is lost': {
    make: async () => {
      encryptionKeys = await secretValue(keyring.secret, keyring.key);
      const sealed = {
        name: 'Sealed',
        slug: 'sealed',
        url: 'https://shop.example/hooks',
        authType: 'bearer',
        authConfig: { token: 'a-long-token-000042' },
      };
      expect((await ask(shop, '/api/destinations', sealed)).status).toBe(201);
      await putSecret(keyring.secret, keyring.key, `k9:${randomBytes(32).toString('base64')}`);
      await restart(...sealing);
      await rolledOut(...sealing);
    },
    mend: async () => {
      await putSecret(keyring.secret, keyring.key, encryptionKeys);
      // The newest revision of the release has the other key until then, and a rollback to it would conflict.
      await upgrade();
      await restart(...sealing);
      await rolledOut(...sealing);
      await conditionIs(shop.name, 'destination/sealed', 'ResolvedRefs', 'True ResolvedRefs');
      await inShop('delete', 'destination/sealed');
    },
    kubectl: () => conditionIs(shop.name, 'destination/sealed', 'ResolvedRefs', 'False SecretNotReadable'),
    helm: 'nothing',
    ...notReady('Destination'),
    metrics: [...notReady('Destination').metrics, { name: 'posthorn_encryption_key_info', labels: /id="k9"/, is: (value) => value === 1 }],
    api: () =>
      eventually(
        async () => expect((await ask(shop, '/api/destinations/sealed')).body).toMatchObject({ authConfig: { token: '••••' } }),
        patienceMs,
      ),
  },
  'the CustomResourceDefinitions are of an earlier release': {
    make: async () => {
      revision = await releaseRevision();
      const path = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/description';
      const patch = JSON.stringify([{ op: 'remove', path }]);
      await kubectl(['patch', 'customresourcedefinition', 'routes.posthorn.dev', '--type=json', '-p', patch]);
      await newControllers();
    },
    mend: async () => {
      // Without this the patch would own the field, and Helm would not overwrite it.
      await kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], JSON.stringify(crdFor('Route')));
      await helm('rollback', 'posthorn', revision, '--namespace', system);
      await rolledOut('posthorn-controller');
      await inSystem('delete', 'configmap', 'other-version');
    },
    kubectl: () => eventually(async () => expect(await areReady('controller')).toContain('false'), patienceMs),
    helm: controllersDoNotRoll,
    readyz: () =>
      eventually(
        async () => expect((await pods().readyz('controller')).join(' ')).toMatch(/crds.*routes\.posthorn\.dev lacks spec\.description/),
        patienceMs,
      ),
    metrics: [failing('crds')],
    alerts: ['PosthornNotReady'],
    console: /process controller on \S+ is not ready: crds: .*routes\.posthorn\.dev lacks/,
  },
  'processes of two versions run': {
    make: nothing,
    mend: nothing,
    kubectl: () => expect(inSystem('rollout', 'status', 'deployment/posthorn-controller', '--timeout=2s')).rejects.toThrow(),
    helm: controllersDoNotRoll,
    metrics: [{ name: 'posthorn_build_info', labels: new RegExp(`version="${otherVersion}"`), is: (value) => value === 1 }],
    alerts: ['PosthornVersionSkew'],
    console: new RegExp(`Several versions of Posthorn run: .*${otherVersion} \\(controller: \\d`),
  },
  'the clocks of two nodes differ': {
    make: async () => {
      revision = await releaseRevision();
      await upgrade('--set-json', `api.extraEnv=${JSON.stringify([clockAhead(20)])}`);
      await kubectlApply([poolOf('ahead', { replicas: 1, podTemplate: { env: [clockAhead(600)] } })]);
      await inSystem('wait', 'deliverypool/ahead', '--for=condition=Ready', patience);
      await putInPool(poolless, 'ahead');
      await rolledOut('posthorn-api');
    },
    mend: async () => {
      await helm('rollback', 'posthorn', revision, '--namespace', system);
      await putInPool(poolless, null);
      await removePool('ahead');
    },
    helm: 'nothing',
    metrics: ['posthorn_clock_skew_seconds', 'posthorn_api_server_clock_skew_seconds'].map((name) => ({
      name,
      labels: /./,
      is: (value: number) => value > 10,
    })),
    alerts: ['PosthornClockSkew', 'PosthornApiServerClockSkew'],
    api: async () => {
      // The workers of the pool `default` may deliver until the change of the pool is published.
      await eventually(async () => {
        const { headers, body } = await delivers(poolless);
        const given = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
        expect(() => new Webhook(poolless.signingSecret).verify(body, given)).toThrow(/too new/);
      }, patienceMs);
    },
    console:
      /The clock of api on \S+ is \d+ s ahead of that of Redis[\s\S]*The clock of api on \S+ is \d+ s ahead of that of the API server/,
  },
} satisfies Failures;
