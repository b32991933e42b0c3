import { specCases, text, type ValidationCase } from './case.ts';
import { sharingCases } from './sharing.ts';

const { valid, invalid } = specCases('Transform', { code: 'payload' });

export const transformCases: ValidationCase[] = [
  valid('the smallest one, with defaults', {}),
  valid('a null type takes the default', { type: null }),
  valid('javascript', { type: 'javascript', code: 'function transform(event) { return event.payload; }' }),
  valid('liquid', { type: 'liquid', code: '{{ payload }}' }),
  invalid('an unknown type', { type: 'lua' }, 'spec.type'),
  valid('code of 65,536 characters', { code: text(65_536, 'ß') }),
  invalid('code of 65,537 characters', { code: text(65_537) }, 'spec.code'),
  invalid('empty code', { code: '' }, 'spec.code'),
  invalid('null code', { code: null }, 'spec.code'),
  invalid('an unknown field', { timeoutMs: 5 }, 'spec.timeoutMs'),
  valid('code that does not parse, which the controller refuses', { code: '(' }),
  ...sharingCases('Transform', { code: 'payload' }, 'spec.code'),
];
