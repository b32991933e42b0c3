import { expect, test } from '@jest/globals';
import { formHelp } from '../../hack/lib/form-help.ts';
import { formNames } from '../../hack/lib/form-schemas.ts';
import type { FormField } from '../../src/web/api/form-schema.ts';

const names = new Set(['rateUnit', 'filterId']);

test('a form names other fields by their labels, and what is no field as it is', () => {
  expect(formHelp('Deliveries per rateUnit. See metaData.', names)).toBe('Deliveries per “Rate unit”. See metaData.');
});

test('descriptions in forms replace null by an empty field', () => {
  expect(formHelp('A text. null removes it.', names)).toBe('A text. Emptied, it is removed.');
  expect(formHelp('Seconds. Null: never.', names)).toBe('Seconds. Empty: never.');
});

/** Help texts of all fields, also those within others. */
function helpsOf(fields: readonly FormField[]): string[] {
  return fields.flatMap(({ help, node }) => {
    if (node.kind === 'object' || node.kind === 'objects') return [help, ...helpsOf(node.fields)];
    return [help, ...(node.kind === 'branches' ? helpsOf(Object.values(node.branches).flat()) : [])];
  });
}

test('no form speaks of null, of masks or of what a request sends', async () => {
  const families = await Promise.all(formNames.map((name) => import(`../../src/web/api/forms/${name}.ts`)));
  const helps = families.flatMap(({ fields }) => helpsOf(fields));
  expect(helps.length).toBeGreaterThan(150);
  expect(
    helps.filter((help) => /\bnull\b|masked|sent back|not sent (?:stays|on)|on change|slug|^(?:while false|true of)/i.test(help)),
  ).toEqual([]);
});
