import { z } from 'zod';
import type { Rule } from './definition.ts';
import { characters, text } from './text.ts';

const unary = ['exists', 'not_exists'] as const;
const listed = ['in', 'not_in'] as const;
const binary = [
  'equals',
  'not_equals',
  'contains',
  'not_contains',
  'starts_with',
  'ends_with',
  'matches',
  'gt',
  'gte',
  'lt',
  'lte',
] as const;

const maxValueLength = 4096;
const maxListedValues = 100;

/** Inline conditions. */
export const filterCondition = z.strictObject({
  field: text(1, 256).describe(
    'payload.x.y, headers.X, query.x (a parameter of the URL), or a path into the payload. Names that contain dots need brackets and quotes: fields["System.State"].',
  ),
  operator: z.enum([...binary, ...unary, ...listed]).describe('How the field is compared with the value.'),
  value: z
    .unknown()
    .refine((value) => typeof value !== 'string' || characters(value) <= maxValueLength, {
      error: `must be at most ${maxValueLength} characters long`,
    })
    .refine((value) => !Array.isArray(value) || value.length <= maxListedValues, { error: `must be at most ${maxListedValues} items long` })
    .meta({ 'x-kubernetes-preserve-unknown-fields': true, nullable: true, maxLength: maxValueLength, maxItems: maxListedValues })
    .optional()
    .describe('What the field is compared with; a list for in and not_in, none for exists and not_exists.'),
});

export const filterLogic = z.enum(['AND', 'OR']).default('AND').describe('Whether all conditions must hold or one.');
export const filterConditions = z.array(filterCondition).min(1).max(50).meta({ 'x-kubernetes-list-type': 'atomic' });

type Condition = z.output<typeof filterCondition>;

/** Whether the operator has the value it needs: a list, any value, or none. */
function hasFittingValue({ operator, value }: Condition): boolean {
  switch (operator) {
    case 'exists':
    case 'not_exists':
      return value === undefined;
    case 'in':
    case 'not_in':
      // The API server's schema cannot refuse null here; the compile step does.
      return Array.isArray(value) || value === null;
    default:
      return value !== undefined;
  }
}

/** The rules of conditions at `at`, in a Filter or in a Route. */
export function filterConditionRules(at: string): Rule[] {
  return [
    {
      at: `${at}[]`,
      message: 'needs a value: a list for in and not_in, none for exists and not_exists, else the value to compare with',
      fieldPath: '.value',
      schema: {
        // Three requirements, not one choice: the server reports what the nearest branch lacks, so each has a near one.
        allOf: [
          {
            anyOf: [
              { properties: { operator: { not: { enum: [...unary] } } }, required: ['value'] },
              { properties: { operator: { enum: [...unary] } } },
            ],
          },
          { anyOf: [{ properties: { operator: { not: { enum: [...unary] } } } }, { not: { required: ['value'] } }] },
          // A list, expressed without `type`, which structural schemas refuse here: only a list can have too few items.
          {
            anyOf: [
              { properties: { value: { not: { minItems: maxListedValues + 1 } } } },
              { properties: { operator: { not: { enum: [...listed] } } } },
            ],
          },
        ],
      },
      check: hasFittingValue,
    },
  ];
}
