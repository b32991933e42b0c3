import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/** Runs kubectl of the PATH with the KUBECONFIG of the environment; returns its standard output, throws with its standard error. */
export async function kubectl(args: readonly string[], input?: string): Promise<string> {
  const child = spawn('kubectl', args, { stdio: ['pipe', 'pipe', 'pipe'] });
  // One that has ended without reading its input reports so by its exit code.
  child.stdin.on('error', () => {});
  child.stdin.end(input ?? '');
  const [output, complaint, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once('close', resolve)),
  ]);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')} ended with ${code}: ${complaint.trim()}`);
  return output;
}

/** Hands objects to `kubectl apply --server-side`. */
export async function kubectlApply(objects: readonly unknown[]): Promise<void> {
  await kubectl(['apply', '--server-side', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
}
