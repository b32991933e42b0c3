import { many, specCases, text, type ValidationCase } from './case.ts';
import { sharingCases } from './sharing.ts';

const exists = { field: 'payload.a', operator: 'exists' };
const { valid, invalid } = specCases('Filter', { conditions: [exists] });
const first = (condition: unknown) => ({ conditions: [condition] });
const compare = (operator: unknown, value: unknown) => first({ field: 'payload.a', operator, value });

export const filterCases: ValidationCase[] = [
  valid('the smallest one, with defaults', {}),
  valid('a null logic takes the default', { logic: null }),
  valid('a name in any script', { name: 'Ä 名前 😀' }),
  invalid('a name of two lines', { name: 'a\nb' }, 'spec.name'),
  ...['\u0000', '\u0007', '\t', '\u001b', '\u007f', '\u0085'].map((control) =>
    invalid(`a name with U+${control.charCodeAt(0).toString(16)}`, { name: `a${control}b` }, 'spec.name'),
  ),
  valid('a description of several lines', { description: 'one\r\n\ttwo\n' }),
  invalid('a description with an escape sequence', { description: '\u001b[31mred' }, 'spec.description'),
  valid('OR', { logic: 'OR' }),
  invalid('logic in lower case', { logic: 'or' }, 'spec.logic'),
  invalid('no conditions', { conditions: [] }, 'spec.conditions'),
  invalid('null conditions', { conditions: null }, 'spec.conditions'),
  valid('50 conditions', { conditions: many(50, () => exists) }),
  invalid('51 conditions', { conditions: many(51, () => exists) }, 'spec.conditions'),
  invalid('a null condition', first(null), 'spec.conditions[0]'),
  invalid('a condition without a field', first({ operator: 'exists' }), 'spec.conditions[0].field'),
  invalid('a condition without an operator', first({ field: 'a', value: 1 }), 'spec.conditions[0].operator'),
  invalid('a condition with an unknown field', first({ ...exists, negate: true }), 'spec.conditions[0].negate'),
  invalid('an empty field', first({ ...exists, field: '' }), 'spec.conditions[0].field'),
  valid('a field of 256 characters', first({ ...exists, field: text(256) })),
  invalid('a field of 257 characters', first({ ...exists, field: text(257) }), 'spec.conditions[0].field'),
  invalid('an unknown operator', compare('like', 'a'), 'spec.conditions[0].operator'),
  valid('a text', compare('equals', 'a')),
  valid('a number', compare('gt', 1.5)),
  valid('a boolean', compare('not_equals', false)),
  valid('an object', compare('equals', { a: { b: [null, 1] } })),
  valid('null as a value', compare('equals', null)),
  valid('a list with equals', compare('equals', ['a'])),
  valid('a list with in', compare('in', ['a', 1, null])),
  valid('an empty list with not_in', compare('not_in', [])),
  valid('100 items with in', compare('in', many(100, String))),
  invalid('101 items with in', compare('in', many(101, String)), 'spec.conditions[0].value'),
  invalid('101 items with equals', compare('equals', many(101, String)), 'spec.conditions[0].value'),
  invalid('a text with in', compare('in', 'a'), 'spec.conditions[0].value'),
  invalid('an object with not_in', compare('not_in', { a: 1 }), 'spec.conditions[0].value'),
  valid('null with in, which the compile step refuses', compare('in', null)),
  invalid('equals without a value', first({ field: 'a', operator: 'equals' }), 'spec.conditions[0].value'),
  invalid('in without a value', first({ field: 'a', operator: 'in' }), 'spec.conditions[0].value'),
  invalid('exists with a value', compare('exists', true), 'spec.conditions[0].value', 'spec.conditions[0]'),
  invalid('not_exists with null', compare('not_exists', null), 'spec.conditions[0].value', 'spec.conditions[0]'),
  valid('a text of 4096 characters', compare('matches', text(4096, '😀'))),
  invalid('a text of 4097 characters', compare('matches', text(4097)), 'spec.conditions[0].value'),
  invalid('the second condition', { conditions: [exists, { field: 'a', operator: 'gt' }] }, 'spec.conditions[1].value'),
  ...sharingCases('Filter', { conditions: [exists] }, 'spec.conditions'),
];
