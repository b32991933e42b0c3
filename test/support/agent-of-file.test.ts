import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Dispatcher, request } from 'undici';
import { AgentOfFile } from './agent-of-file.ts';
import { type CertificateAuthority, createCertificateAuthority } from './certificate-authority.ts';
import { type Receiver, startReceiver } from './receiver.ts';

const directory = mkdtempSync(join(tmpdir(), 'posthorn-agent-'));
const file = join(directory, 'server.crt');
let authority: CertificateAuthority;
let server: Receiver;
let certificate: string;

beforeAll(async () => {
  authority = createCertificateAuthority();
  const { key, cert } = authority.issue(['localhost']);
  certificate = cert.toString();
  server = await startReceiver(undefined, { key: key.toString(), cert: certificate + authority.text });
});
afterAll(async () => {
  await server.close();
  authority.remove();
  rmSync(directory, { recursive: true });
});

async function status(dispatcher: Dispatcher): Promise<number> {
  const { statusCode, body } = await request(server.url, { dispatcher });
  await body.dump();
  return statusCode;
}

test('the agent works once the file is whole, after tries with the half of it that was written first', async () => {
  const agent = new AgentOfFile(file);
  await expect(agent.use(status)).rejects.toThrow('no such file');
  // As kube-apiserver writes it: the server's certificate, then that of its authority.
  writeFileSync(file, certificate);
  await expect(agent.use(status)).rejects.toThrow('self-signed certificate in certificate chain');
  await expect(Promise.all([agent.use(status), agent.use(status)])).rejects.toThrow('self-signed certificate in certificate chain');
  writeFileSync(file, authority.text, { flag: 'a' });
  expect(await agent.use(status)).toBe(200);
  await agent.destroy();
});

test('one agent serves all requests after the first that has succeeded', async () => {
  writeFileSync(file, certificate + authority.text);
  const agent = new AgentOfFile(file);
  const used = new Set<Dispatcher>();
  const note = async (dispatcher: Dispatcher) => {
    used.add(dispatcher);
    return status(dispatcher);
  };
  expect(await Promise.all([agent.use(note), agent.use(note)])).toEqual([200, 200]);
  const first = used.size;
  rmSync(file);
  for (let i = 0; i < 3; i++) expect(await agent.use(note)).toBe(200);
  expect(used.size).toBe(first);
  await agent.destroy();
});
