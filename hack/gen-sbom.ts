// Writes docs/sbom.cdx.json, the software bill of materials of the image. With --check it fails when the file differs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { baseImageOfDockerfile, softwareBillOfMaterials } from './sbom.ts';

const file = 'docs/sbom.cdx.json';
const text = softwareBillOfMaterials(baseImageOfDockerfile());

if (existsSync(file) && readFileSync(file, 'utf8') === text) console.log(`${file} is as it was`);
else if (process.argv.includes('--check')) {
  console.error(`${file} is out of date: run node hack/gen-sbom.ts`);
  process.exitCode = 1;
} else {
  writeFileSync(file, text);
  console.log(`${file}: written`);
}
