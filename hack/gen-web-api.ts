// Writes src/web/api/schema.ts: types of the operations that the console uses (src/web/api/used-operations.ts), from the OpenAPI document. With
// --check it only says whether the file differs, and fails if it does.
import { readFileSync, writeFileSync } from 'node:fs';
import { families } from '../src/facade/families/families.ts';
import { openApiDocument } from '../src/facade/openapi/openapi.ts';
import { usedOperations } from '../src/web/api/used-operations.ts';
import { operationTypes } from './lib/operation-types.ts';

const file = new URL('../src/web/api/schema.ts', import.meta.url);
const wanted = operationTypes(await openApiDocument(families, '0'), usedOperations);

if (process.argv.includes('--check')) {
  if (readFileSync(file, 'utf8') !== wanted) {
    console.error('src/web/api/schema.ts differs from the OpenAPI document: run node hack/gen-web-api.ts');
    process.exitCode = 1;
  }
} else {
  writeFileSync(file, wanted);
  console.log('src/web/api/schema.ts: written');
}
