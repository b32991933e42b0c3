import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import { htmlText } from '../../core/html-text.ts';

/** Contents of the `meta` tags of the page. */
export interface PageSettings {
  /** Below which a client reaches the installation, as `/posthorn`; empty: below nothing. */
  basePath: string;
  /** For those who have chosen none; `auto` is that of the browser. */
  theme: 'auto' | 'light' | 'dark';
  /** Views that every user has on the lists. */
  views: readonly { name: string; screen: string; search: Readonly<Record<string, string>> }[];
  /** Version of the program. */
  version: string;
}

export type Encoding = 'identity' | 'br' | 'gzip';

/** `content`: itself, or the path of a file with it. */
interface Body {
  content: Buffer | string;
  bytes: number;
}

export interface BuiltFile {
  type: string;
  cacheControl: string;
  bodies: { identity: Body; br?: Body; gzip?: Body };
}

export interface BuiltConsole {
  page: BuiltFile;
  /** By their paths below `/console/`. */
  files: ReadonlyMap<string, BuiltFile>;
}

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
};

const licences = 'licences.txt';

/** Reads what `hack/web.ts` has written. Null: there is none. The page is held in memory; of files, which are served as they are, the sizes. */
export async function readBuiltConsole(directory: string, settings: PageSettings): Promise<BuiltConsole | null> {
  const source = await readFile(join(directory, 'index.html'), 'utf8').catch(nullWhereMissing);
  if (source === null) return null;
  const assets = (await readdir(join(directory, 'assets'))).map((name) => `assets/${name}`);
  const names = [...assets, licences].filter((name) => !/\.(?:br|gz)$/.test(name));
  const files = await Promise.all(names.map(async (name) => [name, await fileAt(join(directory, name), name)] as const));
  return { page: await pageOf(source, settings), files: new Map(files) };
}

async function fileAt(path: string, name: string): Promise<BuiltFile> {
  const [identity, br, gzipped] = await Promise.all([bodyAt(path), optionalBodyAt(`${path}.br`), optionalBodyAt(`${path}.gz`)]);
  return {
    type: types[extname(name)] ?? 'application/octet-stream',
    // The name of an asset has a digest of its content.
    cacheControl: name === licences ? 'no-cache' : 'public, max-age=31536000, immutable',
    bodies: { identity, ...(br !== null && { br }), ...(gzipped !== null && { gzip: gzipped }) },
  };
}

async function bodyAt(path: string): Promise<Body> {
  return { content: path, bytes: (await stat(path)).size };
}

function optionalBodyAt(path: string): Promise<Body | null> {
  return bodyAt(path).catch(nullWhereMissing);
}

/** The build has relative addresses, which a path further down would change. */
async function pageOf(source: string, { basePath, theme, views, version }: PageSettings): Promise<BuiltFile> {
  const values: Record<string, string> = { base: basePath, theme, views: JSON.stringify(views), version };
  const text = source
    .replaceAll('"./assets/', `"${basePath}/console/assets/`)
    .replaceAll(
      /<meta name="posthorn-(base|theme|version|views)" content="[^"]*"/g,
      (_, name: string) => `<meta name="posthorn-${name}" content="${htmlText(values[name] ?? '')}"`,
    );
  const plain = Buffer.from(text);
  const [br, gzipped] = await Promise.all([promisify(brotliCompress)(plain), promisify(gzip)(plain)]);
  return {
    type: 'text/html; charset=utf-8',
    // An older page would name assets that are gone.
    cacheControl: 'no-cache',
    bodies: { identity: inMemory(plain), br: inMemory(br), gzip: inMemory(gzipped) },
  };
}

function inMemory(content: Buffer): Body {
  return { content, bytes: content.length };
}

function nullWhereMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
