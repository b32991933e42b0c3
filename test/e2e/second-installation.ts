import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, type Server } from 'node:tls';
import { promisify } from 'node:util';
import { z } from 'zod';
import { configurationKinds, kindPath } from '../../src/resources/kinds.ts';
import { type CertificateAuthority, createCertificateAuthority } from '../support/certificate-authority.ts';
import { type ConnectProxy, startConnectProxy } from '../support/connect-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { deployedChart, helm } from '../support/helm.ts';
import { type RedisServer, startRedis } from '../support/redis.ts';
import { type SmtpReceiver, startSmtpReceiver } from '../support/smtp-receiver.ts';
import { addressOfThisMachine, replacingWorkers } from './cluster-world.ts';
import { kubectl, kubectlApply } from './kubectl.ts';
import type { Installed } from './steady-load.ts';
import { patience, patienceMs } from './system-commands.ts';

const run = promisify(execFile);
const deployedValues = new URL('../../config/cluster-dev/values.yaml', import.meta.url).pathname;
const users = readFileSync(new URL('../../config/redis/users.acl', import.meta.url), 'utf8');
const rulesOfUser = /^user posthorn (.+)$/m.exec(users)?.[1]?.split(' ') ?? [];

export const second: Installed = { installation: 'two', namespace: 'posthorn-two', fullname: 'posthorn-two' };
const inNamespace = ['--namespace', second.namespace];
const inSecond = (...args: string[]): Promise<string> => kubectl([...inNamespace, ...args]);
/** Processes that read the files of their Secrets again. */
const roles = ['api', 'ingest', 'controller'] as const;

const kindsInNamespaces = configurationKinds
  .filter((kind) => kind !== 'Organization')
  .map((kind) => `${kindPath(kind).plural}.posthorn.dev`)
  .join();
const savedList = z.object({
  items: z.array(
    z.looseObject({
      type: z.string().optional(),
      metadata: z.object({
        name: z.string(),
        namespace: z.string().optional(),
        labels: z.record(z.string(), z.string()).optional(),
        annotations: z.record(z.string(), z.string()).optional(),
      }),
      status: z.looseObject({ id: z.string().optional() }).optional(),
    }),
  ),
});
interface SavedObject {
  metadata: { name: string; namespace?: string };
  [field: string]: unknown;
}

export interface Backup {
  /** File with the data of Redis. */
  rdb: string;
  /** Password of its user. */
  password: string;
  /** Values of the release. */
  values: string;
  /** Secrets of the installation, among them the keys that seal secrets. */
  secrets: SavedObject[];
  /** Organizations, and what is in their namespaces. */
  objects: SavedObject[];
}

/** Terminates TLS in front of a Redis, and takes who has a certificate of one of its authorities. */
class TlsEntrance {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Port of the Redis. */
  port: number;

  constructor(port: number) {
    this.port = port;
    this.#server = createServer({ requestCert: true, rejectUnauthorized: true }, (client) => {
      const redis = connect(this.port, '127.0.0.1');
      for (const socket of [client, redis]) {
        this.#sockets.add(socket);
        socket.on('close', () => this.#sockets.delete(socket));
      }
      redis.on('error', () => client.destroy()).on('close', () => client.destroy());
      client.on('error', () => redis.destroy()).on('close', () => redis.destroy());
      client.pipe(redis).pipe(client);
    });
    this.#server.on('tlsClientError', () => {});
  }

  async open(): Promise<number> {
    this.#server.listen(0, '0.0.0.0');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Sets, for new connections, who signs the certificate that it shows, and who those of its clients. */
  use({ shown, trusted }: { shown: CertificateAuthority; trusted: readonly CertificateAuthority[] }): void {
    this.#server.setSecureContext({ ...shown.issue([addressOfThisMachine()]), ca: trusted.map(({ text }) => text) });
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** A second release in the cluster, with one pod of each role. Its Redis, its SMTP server and its proxy are on this machine. */
export class SecondInstallation {
  redis: RedisServer;
  readonly entrance: TlsEntrance;
  readonly proxy: ConnectProxy;
  readonly smtp: SmtpReceiver;
  readonly authority: CertificateAuthority;
  readonly #directory: string;
  readonly #redisPort: number;
  #refreshes = 0;

  private constructor(parts: Pick<SecondInstallation, 'redis' | 'entrance' | 'proxy' | 'smtp' | 'authority'>, redisPort: number) {
    this.redis = parts.redis;
    this.entrance = parts.entrance;
    this.proxy = parts.proxy;
    this.smtp = parts.smtp;
    this.authority = parts.authority;
    this.#redisPort = redisPort;
    this.#directory = mkdtempSync(join(tmpdir(), 'posthorn-two-'));
  }

  static async install(): Promise<SecondInstallation> {
    const host = addressOfThisMachine();
    const authority = createCertificateAuthority();
    const [redis, proxy, smtp] = await Promise.all([
      startRedis(),
      startConnectProxy({ host }),
      startSmtpReceiver({ host, user: 'posthorn', password: 'one', ...authority.issue([host]) }),
    ]);
    const entrance = new TlsEntrance(redis.port);
    entrance.use({ shown: authority, trusted: [authority] });
    const installation = new SecondInstallation({ redis, entrance, proxy, smtp, authority }, await entrance.open());
    try {
      await installation.#install();
    } catch (error) {
      await installation.remove();
      throw error;
    }
    return installation;
  }

  /** Changes the user of Redis by the rules. */
  async setUser(...rules: string[]): Promise<void> {
    await this.redis.client.call('ACL', 'SETUSER', 'posthorn', ...rules);
  }

  /** Ends all connections of the installation to Redis. */
  async cutConnections(): Promise<void> {
    await this.redis.client.call('CLIENT', 'KILL', 'USER', 'posthorn');
  }

  redisUrl(password: string): string {
    return `rediss://posthorn:${password}@${addressOfThisMachine()}:${this.#redisPort}/0`;
  }

  /** `values`: as text. */
  async putSecret(name: string, values: Record<string, string>): Promise<void> {
    await kubectlApply([{ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: second.namespace }, stringData: values }]);
  }

  async secretValue(name: string, key: string): Promise<string> {
    return Buffer.from(await inSecond('get', 'secret', name, '-o', `jsonpath={.data.${key}}`), 'base64').toString();
  }

  /**
   * Makes a change of a Secret that every process has, and waits until all workers are new and the files of the others have the text.
   * `file`: below /etc/posthorn.
   */
  async rotates(change: () => Promise<unknown>, file: string, text: string): Promise<void> {
    await Promise.all([replacingWorkers(change, second.namespace), this.#filesHave(file, text)]);
  }

  /** Waits until the files of these roles have the text. */
  async #filesHave(file: string, text: string): Promise<void> {
    for (const role of roles)
      await eventually(`${role} to have the new ${file}`, patienceMs, async () => {
        await this.refresh();
        return (await inSecond('exec', `deployment/posthorn-two-${role}`, '--', 'cat', `/etc/posthorn/${file}`)).includes(text);
      });
  }

  /** Makes the kubelet check the files of all pods now. By itself it does so after a minute or two. */
  async refresh(): Promise<void> {
    await inSecond('annotate', 'pods', '--all', '--overwrite', `refreshed=${++this.#refreshes}`);
  }

  async upgrade(...args: string[]): Promise<void> {
    await helm('upgrade', 'posthorn', deployedChart(), ...inNamespace, '--reset-then-reuse-values', ...args, '--wait', patience);
  }

  /** Saves what docs/backup.md names, while the installation runs. `namespaces`: of its organizations, which have the same names. */
  async save(namespaces: readonly string[]): Promise<Backup> {
    const rdb = join(this.#directory, 'dump.rdb');
    await run('redis-cli', ['-p', String(this.redis.port), '--rdb', rdb]);
    const organizations = (await savedObjects('organizations.posthorn.dev')).filter(({ metadata }) => namespaces.includes(metadata.name));
    const inNamespaces = await Promise.all(namespaces.map((namespace) => savedObjects(`${kindsInNamespaces},secrets`, namespace)));
    return {
      rdb,
      password: new URL(await this.secretValue('redis', 'POSTHORN_REDIS_URL')).password,
      values: await helm('get', 'values', 'posthorn', ...inNamespace, '--output', 'yaml'),
      secrets: await savedObjects('secrets', second.namespace),
      objects: [...organizations, ...inNamespaces.flat()],
    };
  }

  /** Makes an installation of the backup, in the order of docs/backup.md, where nothing is left of it. */
  async restore({ rdb, password, values, secrets, objects }: Backup): Promise<void> {
    await this.redis.stop();
    const data = join(this.#directory, 'restored');
    mkdirSync(data);
    cpSync(rdb, join(data, 'dump.rdb'));
    await createNamespace();
    await kubectlApply(secrets);
    this.redis = await startRedis(['--save', '', '--appendonly', 'no', '--dir', data]);
    this.entrance.port = this.redis.port;
    await this.setUser('reset', ...rulesOfUser, 'resetpass', `>${password}`);
    for (const namespace of new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? [])))
      await kubectlApply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }]);
    await kubectlApply(objects);
    const file = join(this.#directory, 'saved.yaml');
    writeFileSync(file, values);
    await this.#installWith(file);
  }

  async uninstall(): Promise<void> {
    await helm('uninstall', 'posthorn', ...inNamespace, '--wait', patience);
  }

  /** Also where it is uninstalled already. */
  async remove(): Promise<void> {
    try {
      await helm('uninstall', 'posthorn', ...inNamespace, '--ignore-not-found', '--wait', patience);
      await kubectl(['delete', 'organization', second.installation, '--ignore-not-found', patience]);
      await kubectl(['delete', 'namespace', second.namespace, second.installation, '--ignore-not-found', patience]);
    } finally {
      this.entrance.close();
      await Promise.all([this.redis.stop(), this.proxy.close(), this.smtp.stop()]);
      this.authority.remove();
      rmSync(this.#directory, { recursive: true, force: true });
    }
  }

  /** Each pod of a role that reads its files again, with the number of its restarts. */
  async pods(): Promise<string[]> {
    const selector = `app.kubernetes.io/component in (${roles.join()})`;
    const columns = 'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount}{"\\n"}{end}';
    return (await inSecond('get', 'pods', '--selector', selector, '-o', columns)).trim().split('\n').sort();
  }

  async #install(): Promise<void> {
    const host = addressOfThisMachine();
    await this.setUser('reset', ...rulesOfUser, 'resetpass', '>one');
    await createNamespace();
    await this.putSecret('redis', { POSTHORN_REDIS_URL: this.redisUrl('one') });
    await this.putSecret('redis-ca', { 'ca.crt': this.authority.text });
    await this.putSecret('redis-certificate', certificateOf(this.authority));
    await this.putSecret('smtp', { POSTHORN_SMTP_PASSWORD: 'one' });
    await this.putSecret('proxy', { POSTHORN_EGRESS_PROXY_URL: this.proxy.url });
    const values = join(this.#directory, 'values.json');
    const own = {
      installation: second.installation,
      crds: { install: false },
      organization: { namespace: second.installation },
      controller: { replicas: 1, extraEnv: [] },
      redis: { existingSecret: 'redis', tls: { caSecret: 'redis-ca', certificateSecret: 'redis-certificate' } },
      networkPolicies: { redisPorts: [this.#redisPort] },
      smtp: { host, port: this.smtp.port, from: 'alerts@example.com', user: 'posthorn', existingSecret: 'smtp' },
      egress: { caCertificates: this.authority.text, proxySecret: 'proxy' },
    };
    writeFileSync(values, JSON.stringify(own));
    await this.#installWith(deployedValues, values);
  }

  async #installWith(...files: string[]): Promise<void> {
    const values = files.flatMap((file) => ['--values', file]);
    await helm('install', 'posthorn', deployedChart(), ...inNamespace, ...values, '--wait', patience);
    await inSecond('wait', 'deliverypool/default', '--for=create', patience);
    await inSecond('wait', 'deliverypool/default', '--for=condition=Ready', patience);
    await kubectl(['wait', `organization/${second.installation}`, '--for=condition=Ready', patience]);
  }
}

async function createNamespace(): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  await kubectlApply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: second.namespace, labels } }]);
}

/** As they can be applied to a cluster that has none of them, with their ids. */
async function savedObjects(kinds: string, namespace = 'default'): Promise<SavedObject[]> {
  const { items } = savedList.parse(JSON.parse(await kubectl(['get', kinds, '-n', namespace, '-o', 'json'])));
  return items
    .filter(({ type = '' }) => !type.startsWith('helm.sh/'))
    .map(({ metadata: { name, namespace, labels, annotations = {} }, status, ...object }) => {
      const id = status?.id === undefined ? {} : { 'posthorn.dev/id': status.id };
      return {
        ...object,
        metadata: {
          name,
          ...(namespace !== undefined && { namespace }),
          ...(labels && { labels }),
          annotations: { ...annotations, ...id },
        },
      };
    });
}

/** What the Secret of a client certificate holds. */
export function certificateOf(authority: CertificateAuthority): Record<string, string> {
  const { key, cert } = authority.issue([`client-${randomBytes(3).toString('hex')}`]);
  return { 'tls.crt': cert.toString(), 'tls.key': key.toString() };
}
