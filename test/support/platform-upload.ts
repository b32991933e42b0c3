// A process that uploads twice to a store with the identity that its environment gives it, as a delivery pod does:
//   node test/support/platform-upload.ts STORE ADDRESS
// STORE is the record of the store as JSON. Every name is resolved to ADDRESS; NODE_EXTRA_CA_CERTS holds its certificate authorities.
import dns from 'node:dns';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const [store = '', address = ''] = process.argv.slice(2);
type Found = (error: null, address: string | { address: string; family: number }[], family?: number) => void;
const lookup = (_name: string, options: { all?: boolean } | Found, callback?: Found): void => {
  const found = callback ?? (options as Found);
  if (typeof options === 'object' && options.all === true) found(null, [{ address, family: 4 }]);
  else found(null, address, 4);
};
Object.assign(dns, { lookup });
syncBuiltinESMExports();

const { openObjectStore } = await import('../../src/delivery/targets/warehouse/open-object-store.ts');
const { upload } = await import('../../src/delivery/targets/warehouse/upload.ts');
const { Dispatchers } = await import('../../src/delivery/targets/http/dispatchers.ts');
const { SentSecrets } = await import('../../src/delivery/targets/http/sent-secrets.ts');
const { systemClock } = await import('../../src/runtime/system-clock.ts');

const extraCa = readFileSync(process.env['NODE_EXTRA_CA_CERTS'] ?? '', 'utf8');
const dispatchers = new Dispatchers({ connections: 2, clock: systemClock, extraCa });
const egress = { allowedCidrs: ['127.0.0.0/8'], allowedHosts: [] };
const dispatcher = dispatchers.forRules({ egress, tls: null, usesProxy: false })();
const opened = await openObjectStore(JSON.parse(store), {});
for (const key of ['raw/first', 'raw/second']) {
  const object = { key, body: Buffer.from('{"order":7}\n'), contentType: 'application/x-ndjson' };
  const result = await upload(opened, [object], {
    dispatcher,
    secrets: SentSecrets.none,
    clock: systemClock,
    signal: new AbortController().signal,
    timeoutMs: 10_000,
  });
  const told = result.type === 'response' ? result.status : result.error.message;
  process.stdout.write(`${key} ${told} ${result.code}\n`);
}
await dispatchers.close();
process.exit(0);
