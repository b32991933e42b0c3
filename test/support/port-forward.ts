import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { eventually } from './eventually.ts';

export interface PortForward {
  readonly port: number;
  stop(): Promise<void>;
}

const deadlineMs = 60_000;

/** `kubectl port-forward` to a Service or Pod, on a free port of the loopback address. Begins again where the pod that kubectl has chosen does not run any more. */
export function portForward(namespace: string, target: string, port: number): Promise<PortForward> {
  return eventually(() => startPortForward(namespace, target, port), deadlineMs);
}

async function startPortForward(namespace: string, target: string, port: number): Promise<PortForward> {
  const child = spawn('kubectl', ['-n', namespace, 'port-forward', target, `:${port}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  for await (const line of createInterface(child.stdout)) {
    const match = /127\.0\.0\.1:(\d+) ->/.exec(line);
    if (match === null) continue;
    child.stdout.resume();
    return {
      port: Number(match[1]),
      stop: async () => {
        child.kill('SIGTERM');
        await exited;
      },
    };
  }
  throw new Error(`kubectl port-forward ${target} ended`);
}
