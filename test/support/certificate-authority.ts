import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface CertificateAuthority {
  /** PEM file of its certificate. */
  readonly file: string;
  /** Its certificate (PEM). */
  readonly text: string;
  /** Key and certificate (PEM) of a server with these IP addresses and names, valid for so many days; -1: it ended yesterday. */
  issue(addresses: readonly string[], days?: number): { key: Buffer; cert: Buffer };
  remove(): void;
}

/** A private CA of this test's own, made by openssl. */
export function createCertificateAuthority(keys: 'ec' | 'rsa' = 'ec'): CertificateAuthority {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-ca-'));
  const at = (name: string): string => join(directory, name);
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'pipe' });
  const newKey = [...(keys === 'rsa' ? ['-newkey', 'rsa:2048'] : ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256']), '-nodes'];
  openssl('req', '-x509', ...newKey, '-keyout', at('ca.key'), '-out', at('ca.crt'), '-days', '2', '-subj', '/CN=posthorn test CA');
  let issued = 0;
  return {
    file: at('ca.crt'),
    text: readFileSync(at('ca.crt'), 'utf8'),
    issue: (addresses, days = 2) => {
      const name = `server-${issued++}`;
      writeFileSync(
        at(`${name}.cnf`),
        `subjectAltName=${addresses.map((address) => `${isIP(address) === 0 ? 'DNS' : 'IP'}:${address}`).join(',')}\n`,
      );
      openssl('req', ...newKey, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`), '-subj', `/CN=${name}`);
      const signing = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', `${days}`, '-extfile', at(`${name}.cnf`)];
      openssl('x509', '-req', '-in', at(`${name}.csr`), ...signing, '-out', at(`${name}.crt`));
      return { key: readFileSync(at(`${name}.key`)), cert: readFileSync(at(`${name}.crt`)) };
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
