// Bundles the program for tests, which start it hundreds of times: Node finds and loads a few large files in half the time that it takes for a thousand small ones.
//
//   node hack/test-program.ts   bundles it unless there is a bundle of the same sources, and writes the path of the bundled program
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'vite';
import { filesBelow, filesDigest } from './files-digest.ts';

const root = new URL('../', import.meta.url).pathname;
const bundles = join(root, '.cache/program');
/** The clients of the platforms of clouds. A process that reaches no such platform does not load them. */
const rarelyLoaded = ['@aws-sdk/client-s3', '@azure/identity', '@azure/storage-blob', '@google-cloud/storage', 'google-auth-library'];

function sourcesDigest(): string {
  const sources = filesBelow(join(root, 'src')).filter((path) => !path.startsWith(join(root, 'src/web/')) && !path.endsWith('.test.ts'));
  return filesDigest(root, [...sources, join(root, 'package-lock.json'), import.meta.filename]);
}

/** A module finds what is beside it in the source tree. The sandbox finds its bundled body, and may read the bundle and the packages alone. */
function sourcePlaces(directory: string): Plugin {
  const sandbox = join(root, 'src/sandbox/');
  const place = (id: string): string =>
    id.startsWith(sandbox) ? join(directory, 'sandbox', `${id.slice(sandbox.length, -'ts'.length)}js`) : id;
  return {
    name: 'posthorn-source-places',
    enforce: 'pre',
    transform: (code, id) =>
      id.startsWith(root) && code.includes('import.meta.url')
        ? { code: code.replaceAll('import.meta.url', JSON.stringify(`file://${place(id)}`)), map: null }
        : null,
  };
}

/** `directory`: where the bundle will be; it is written to `outDir`. */
async function bundleInto(outDir: string, directory: string): Promise<void> {
  await build({
    configFile: false,
    root,
    logLevel: 'warn',
    plugins: [sourcePlaces(directory)],
    ssr: { noExternal: true, external: rarelyLoaded },
    build: {
      ssr: true,
      outDir,
      target: 'node24',
      minify: false,
      rolldownOptions: {
        input: { posthorn: 'src/cmd/posthorn.ts', 'sandbox/process-body': 'src/sandbox/process-body.ts' },
        output: {
          entryFileNames: ({ name }) => (name === 'posthorn' ? '[name].mjs' : '[name].js'),
          chunkFileNames: '[name]-[hash].mjs',
          keepNames: true,
        },
      },
    },
  });
  // The sandbox may read none of a directory above.
  writeFileSync(join(outDir, 'package.json'), '{"type":"module"}');
}

/** Another run may still start one that is younger. */
const unusedMs = 24 * 3_600_000;

const directory = join(bundles, sourcesDigest());
if (!existsSync(directory)) {
  const made = `${directory}.new-${process.pid}`;
  mkdirSync(bundles, { recursive: true });
  for (const former of readdirSync(bundles).map((name) => join(bundles, name)))
    if (Date.now() - (statSync(former, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > unusedMs)
      rmSync(former, { recursive: true, force: true });
  await bundleInto(made, directory);
  try {
    renameSync(made, directory);
  } catch (error) {
    // Another process may have bundled the same sources first.
    rmSync(made, { recursive: true });
    if (!existsSync(directory)) throw error;
  }
}
const now = new Date();
utimesSync(directory, now, now);
process.stdout.write(`${join(directory, 'posthorn.mjs')}\n`);
