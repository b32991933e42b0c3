// Writes what the console has of the OpenAPI document: src/web/api/schema.ts, types of the operations that it uses
// (src/web/api/used-operations.ts), and src/web/api/forms/, the fields of the bodies that it has forms of; and src/web/api/provider-setup.ts, how each
// provider signs. With --check it only reports which file differs, and fails if one does.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { ownProvider, type Provider, providerNames, providers } from '../src/core/providers/providers.ts';
import { families } from '../src/facade/families/families.ts';
import { openApiDocument } from '../src/facade/openapi/openapi.ts';
import { usedOperations } from '../src/web/api/used-operations.ts';
import { type FormFamily, formFields, formNames } from './lib/form-schemas.ts';
import { operationTypes } from './lib/operation-types.ts';

const document = await openApiDocument(families, '0');
const wanted = new Map([['schema.ts', operationTypes(document, usedOperations)]]);
for (const family of formNames) wanted.set(`forms/${family}.ts`, formModule(family));

wanted.set('provider-setup.ts', setupModule());

for (const [name, text] of wanted) {
  const file = new URL(`../src/web/api/${name}`, import.meta.url);
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
    console.log(`src/web/api/${name}: written`);
  } else if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
    console.error(`src/web/api/${name} differs from the OpenAPI document or the providers: run node hack/gen-web-api.ts`);
    process.exitCode = 1;
  }
}

function formModule(family: FormFamily): string {
  const fields = formFields(document, family).map((field) => `  ${JSON.stringify(field)},\n`);
  return [
    '// Made by hack/gen-web-api.ts from the OpenAPI document. Do not edit.\n',
    "import type { FormField } from '../form-schema.ts';\n\n",
    `export const fields: FormField[] = [\n${fields.join('')}];\n`,
  ].join('');
}

function setupModule(): string {
  const plain = (markdown: string): string => markdown.replaceAll('`', '');
  const line = (name: Provider): string => {
    const { title, url, secret, docs } = providers[name];
    const setup = {
      title,
      url,
      header: plain(docs.header),
      signed: plain(docs.signed),
      secret: plain(docs.secret),
      isSecretOurs: secret.isOurs,
    };
    return `  ${JSON.stringify(name)}: ${JSON.stringify(setup)},\n`;
  };
  return [
    '// Made by hack/gen-web-api.ts from src/core/providers. Do not edit.\n\n',
    'interface ProviderSetup {\n  title: string;\n  /** Page on which the sender describes its signatures. */\n  url: string | null;\n',
    '  header: string;\n  signed: string;\n  /** Which secret of the provider is meant. */\n  secret: string;\n',
    '  /** Posthorn can make the secret; otherwise the provider does. */\n  isSecretOurs: boolean;\n}\n\n',
    `export const providerSetup: Readonly<Record<string, ProviderSetup>> = {\n${providerNames
      .filter((name) => name !== ownProvider)
      .map(line)
      .join('')}};\n`,
  ].join('');
}
