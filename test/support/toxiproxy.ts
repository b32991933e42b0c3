import { execFileSync } from 'node:child_process';
import { onFreePort } from './ports.ts';
import { spawnServer } from './server-process.ts';

const root = new URL('../../', import.meta.url).pathname;
const install = '. hack/lib/toolchain.sh && . hack/lib/toxiproxy.sh && ensure_toxiproxy && echo "$toxiproxy"';

/** As Toxiproxy names them, with their attributes: https://github.com/Shopify/toxiproxy#toxics */
export interface Toxic {
  type: 'latency' | 'timeout' | 'reset_peer' | 'slicer' | 'limit_data';
  stream: 'upstream' | 'downstream';
  attributes: Record<string, number>;
}

/** A line through Toxiproxy to one server. */
export interface ToxicLine {
  readonly port: number;
  /** Disturbs its connections, existing and future ones, until `mend`. */
  add(toxic: Toxic): Promise<void>;
  /** Closes its connections and refuses others, until `mend`. */
  cut(): Promise<void>;
  /** Removes everything again; what a toxic has swallowed stays lost, with its connection. */
  mend(): Promise<void>;
}

/** A Toxiproxy of this program's own. */
export interface Toxiproxy {
  lineTo(port: number): Promise<ToxicLine>;
  stop(): Promise<void>;
}

export async function startToxiproxy(): Promise<Toxiproxy> {
  const file = execFileSync('bash', ['-c', install], { cwd: root, encoding: 'utf8' }).trim();
  const { apiPort, server } = await onFreePort(async (apiPort) => {
    const server = spawnServer(file, ['-host', '127.0.0.1', '-port', String(apiPort)], root);
    await server.untilUp(apiPort);
    return { apiPort, server };
  });
  const call = async (method: string, path: string, body?: object): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${apiPort}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    if (!answer.ok) throw new Error(`toxiproxy: ${method} ${path}: ${answer.status} ${await answer.text()}`);
  };
  let lines = 0;
  return {
    lineTo: async (target) => {
      const name = `line-${lines++}`;
      // Not any port, which somebody else could get while the line is cut.
      const port = await onFreePort(async (port) => {
        await call('POST', '/proxies', { name, listen: `127.0.0.1:${port}`, upstream: `127.0.0.1:${target}`, enabled: true });
        return port;
      });
      let toxics: string[] = [];
      return {
        port,
        add: async (toxic) => {
          const toxicName = `${toxic.type}-${toxics.length}`;
          toxics.push(toxicName);
          await call('POST', `/proxies/${name}/toxics`, { name: toxicName, toxicity: 1, ...toxic });
        },
        cut: () => call('POST', `/proxies/${name}`, { enabled: false }),
        mend: async () => {
          for (const toxic of toxics) await call('DELETE', `/proxies/${name}/toxics/${toxic}`);
          toxics = [];
          await call('POST', `/proxies/${name}`, { enabled: true });
        },
      };
    },
    stop: () => server.stop('SIGTERM'),
  };
}
