// Writes docs/sbom.cdx.json, the software bill of materials of the image. With --check it fails when the file differs.
// With --base-image IMAGE and --output FILE it writes that of an image on another base.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { baseImageOfDockerfile, softwareBillOfMaterials } from './sbom.ts';

const { values } = parseArgs({
  options: { check: { type: 'boolean' }, 'base-image': { type: 'string' }, output: { type: 'string', default: 'docs/sbom.cdx.json' } },
});
const file = values.output;
const text = softwareBillOfMaterials(values['base-image'] ?? baseImageOfDockerfile());

if (existsSync(file) && readFileSync(file, 'utf8') === text) console.log(`${file} is as it was`);
else if (values.check === true) {
  console.error(`${file} is out of date: run node hack/gen-sbom.ts`);
  process.exitCode = 1;
} else {
  writeFileSync(file, text);
  console.log(`${file}: written`);
}
