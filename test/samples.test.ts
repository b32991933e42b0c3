import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { admit } from '../src/resources/admission.ts';
import { parseManifests } from '../src/runtime/manifests/parse.ts';

const root = new URL('../', import.meta.url).pathname;

/** Samples of kinds that standalone does not have. */
const ofClusters = ['config/samples/delivery-pool.yaml', 'config/samples/quickstart-cluster/2-receiver.yaml'];

describe.each(globSync('config/samples/**/*.yaml', { cwd: root }).filter((file) => !ofClusters.includes(file)))('%s', (file) => {
  const { objects, errors } = parseManifests(file, readFileSync(root + file, 'utf8'));

  test('is read without complaints', () => {
    expect(errors).toEqual([]);
    expect(objects).not.toEqual([]);
  });

  test.each(objects.map((object) => [object.kind, object] as const))('has a %s that its schema admits', (kind, object) => {
    expect(admit(kind, object).causes).toBeUndefined();
  });
});

test('the sample of a DeliveryPool is one that its schema admits', () => {
  expect(admit('DeliveryPool', parse(readFileSync(`${root}config/samples/delivery-pool.yaml`, 'utf8'))).causes).toBeUndefined();
});
