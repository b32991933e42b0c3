import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { download, type StoreServer } from './object-stores.ts';

/** Rows of objects, as an independent reader of partitioned tables sees them. `DIRECTORY` in the query is replaced by their path. */
export async function rowsOfObjects(server: StoreServer, query: string): Promise<unknown[]> {
  const directory = mkdtempSync(join(tmpdir(), 'posthorn-duckdb-'));
  try {
    download(await server.objects(), directory);
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    const result = await connection.runAndReadAll(query.replaceAll('DIRECTORY', directory));
    const rows = result.getRowObjectsJson();
    connection.closeSync();
    instance.closeSync();
    return rows;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
