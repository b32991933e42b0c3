import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ControlPlane } from './control-plane.ts';
import { chart, helm } from './helm.ts';
import { type Program, startProgram } from './program.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
type Any = any;

/** The chart, installed in a control plane that runs no pods. */
export interface HelmRelease {
  /** Installs or upgrades to what is given, such as a packaged chart; else to the chart of this tree. */
  put(command: 'install' | 'upgrade', what?: string, ...args: string[]): Promise<string>;
  /** Data of a Secret in its namespace, as it is stored. */
  secret(name: string): Promise<Record<string, string>>;
  /** A kubeconfig with the rights of a service account. */
  kubeconfigOf(account: string): Promise<string>;
  /** Starts a role with the environment, the files of Secrets, the bootstrap files and the rights that the chart gives it; `environment` goes before it. */
  start(role: 'controller' | 'api', environment: Record<string, string>): Promise<Program>;
}

const decoded = (value = ''): string => Buffer.from(value, 'base64').toString('utf8');

/** `fullname`: with which the names of its objects begin. `directory`: for files of its programs. */
export function helmRelease(
  plane: ControlPlane,
  { release, fullname, namespace, directory }: { release: string; fullname: string; namespace: string; directory: string },
): HelmRelease {
  const get = (path: string): Promise<Any> => plane.request('GET', path);
  const secret = async (name: string): Promise<Record<string, string>> =>
    (await get(`/api/v1/namespaces/${namespace}/secrets/${name}`)).data;
  const tokenOf = async (account: string): Promise<string> => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
    const made: Any = await plane.request('POST', path, { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} });
    return made.status.token;
  };
  const kubeconfigOf = async (account: string) => plane.writeKubeconfig({ token: await tokenOf(account) });
  const environmentOf = async (deployment: string): Promise<Record<string, string>> => {
    const { spec } = await get(`/apis/apps/v1/namespaces/${namespace}/deployments/${deployment}`);
    const { containers, volumes = [] } = spec.template.spec;
    const variables: Record<string, string> = {};
    for (const { name, value, valueFrom } of containers[0].env)
      variables[name] = value ?? decoded((await secret(valueFrom.secretKeyRef.name))[valueFrom.secretKeyRef.key]);
    for (const volume of volumes) {
      if (volume.secret === undefined) continue;
      const files = await mountSecret(volume);
      for (const { name, mountPath } of containers[0].volumeMounts)
        if (name === volume.name)
          for (const [variable, value] of Object.entries(variables)) variables[variable] = value.replace(`${mountPath}/`, `${files}/`);
    }
    return variables;
  };
  /** Writes the files of a volume as the kubelet does. */
  const mountSecret = async ({ name, secret: { secretName, items } }: Any): Promise<string> => {
    const data = await secret(secretName);
    const files = join(directory, name);
    mkdirSync(files, { recursive: true });
    const paths: { key: string; path: string }[] = items ?? Object.keys(data).map((key) => ({ key, path: key }));
    for (const { key, path } of paths) writeFileSync(join(files, path), decoded(data[key]));
    return files;
  };
  const bootstrapFiles = async (): Promise<string> => {
    const { data } = await get(`/api/v1/namespaces/${namespace}/configmaps/${fullname}-bootstrap`);
    const files = join(directory, 'bootstrap');
    mkdirSync(files, { recursive: true });
    for (const [file, text] of Object.entries<string>(data)) writeFileSync(join(files, file), text);
    return files;
  };
  return {
    put: (command, what = chart, ...args) =>
      helm(command, release, what, '--namespace', namespace, '--kubeconfig', plane.kubeconfigPath, ...args),
    secret,
    kubeconfigOf,
    start: async (role, environment) =>
      startProgram([role], {
        ...(await environmentOf(`${fullname}-${role}`)),
        KUBECONFIG: await kubeconfigOf(`${fullname}-${role}`),
        ...(role === 'controller' && { POSTHORN_LEASE_NAMESPACE: namespace, POSTHORN_BOOTSTRAP_DIR: await bootstrapFiles() }),
        POSTHORN_OPS_PORT: '0',
        ...environment,
      }),
  };
}
