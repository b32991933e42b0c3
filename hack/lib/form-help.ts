import { labelOf } from '../../src/web/app/resource-form/form-body.ts';

/** Phrases of no use in a form, and their replacements. The first that matches goes first. */
const words: readonly (readonly [RegExp, string])[] = [
  [
    / Credentials are shown as four bullets and, from twelve characters on, their last four characters; sent back so they are kept\./,
    ' Credentials that are stored are shown as bullets, which keep them.',
  ],
  [
    / (?:Credentials|Secrets) are masked on read; a mask sent back keeps what is stored\./,
    ' Secrets that are stored are shown as bullets, which keep them.',
  ],
  [/; values are masked on read\./, '. Values that are stored are shown as bullets, which keep them.'],
  [/ What is not sent (?:on change )?stays\./, ''],
  [/^What is not sent stays\. .*$/, 'How fast deliveries go out.'],
  [/ A policy with all of the other fields, one of them changed.*$/, ''],
  [/; on change (?:it|they) replaces? the whole map\./, '.'],
  [/ On change it replaces the whole map\./, ''],
  [/(?:; |\. )masked on read\./i, '. It is not shown again.'],
  [/^Masked on read\./, 'It is not shown again.'],
  [/; write-only\./, '. It is not shown again.'],
  [/ Masked on read; null removes it\./, ' It is not shown again. Emptied, it is removed.'],
  [/[.;] null removes (?:it|them): (\w)/, '. Emptied, it is removed: $1'],
  [/[.;] null removes it\./, '. Emptied, it is removed.'],
  [/[.;] null removes them\./, '. Emptied, they are removed.'],
  [/ Null removes the list\./, ''],
  [/ Default: never\. Null: never\./, ' Empty: never.'],
  [/; null: /, '. Empty: '],
  [/ Null: /, ' Empty: '],
  [/; null, the default: /, '. Empty: '],
  [/ null, the default: /, ' Empty: '],
  [/ Default: false\./, ''],
  [/^While false, /, 'While off, '],
  [/^True of what/, 'On for what'],
  [/^Default true once/, 'On by default once'],
  [/Name in paths and in Kubernetes; derived from the name when absent\./, 'Name in addresses and in Kubernetes. Empty: made of the name.'],
  [/metadata\.name is the same/, 'In Kubernetes it is the same'],
  [/^Ids or slugs of the destinations; these or destinationId\.$/, 'Where the events go.'],
  [/^Id or slug of a filter; replaces filterConditions\./, 'A shared filter, in place of conditions of its own.'],
  [/^Inline conditions; replace filterId\./, 'Conditions of its own, in place of a shared filter.'],
  [/^Id or slug of (the source)\./, 'Where the events come from.'],
  [/^Id or slug of (an?|the) (\w+)/, 'The $2'],
  [/^Ids or slugs of (?:the )?(\w+)/, 'The $1'],
  [/^Id or name of (an?|the) /, 'The '],
  [/^Id of (an?|the) /, 'The '],
];

const aName = /\b[a-z]+(?:[A-Z][a-z0-9]*)+\b/g;

/** The description of a field of a body, in the words of a form. `names`: of fields, which the form shows by their labels. */
export function formHelp(description: string, names: ReadonlySet<string>): string {
  const text = words.reduce((before, [pattern, instead]) => before.replace(pattern, instead), description);
  return text.replace(aName, (name) => (names.has(name) ? `“${labelOf(name)}”` : name));
}
