import { specCases, text, type ValidationCase } from './case.ts';

const { valid, invalid, validChange } = specCases('WebhookApplication', {});

export const webhookApplicationCases: ValidationCase[] = [
  valid('nothing', {}),
  valid('everything', {
    name: 'Shop 17',
    externalId: 'customer/17',
    metadata: { tier: 'gold', contacts: [{ name: 'Ann' }], none: null },
    rateLimits: { perSecond: 1, perMinute: 60_000_000, perHour: 5 },
    enabled: false,
    disabledReason: 'Unpaid.',
  }),
  valid('one rate limit', { rateLimits: { perHour: 7 } }),
  valid('the longest external id', { externalId: text(255, '😀') }),
  invalid('an external id with a control character', { externalId: 'a\u0000' }, 'spec.externalId'),
  invalid('a name with a control character', { name: 'a\u001f' }, 'spec.name'),
  invalid('no external id', { externalId: '' }, 'spec.externalId'),
  invalid('an external id too long', { externalId: text(256) }, 'spec.externalId'),
  invalid('an external id with a line break', { externalId: 'a\nb' }, 'spec.externalId'),
  invalid('metadata that is no object', { metadata: ['gold'] }, 'spec.metadata'),
  invalid('a rate limit of nothing', { rateLimits: { perMinute: 0 } }, 'spec.rateLimits.perMinute'),
  valid('the largest rate limits', { rateLimits: { perSecond: 1_000_000, perMinute: 60_000_000, perHour: 3_600_000_000 } }),
  invalid('a rate limit per second too high', { rateLimits: { perSecond: 1_000_001 } }, 'spec.rateLimits.perSecond'),
  invalid('a rate limit per minute too high', { rateLimits: { perMinute: 60_000_001 } }, 'spec.rateLimits.perMinute'),
  invalid('a rate limit per hour too high', { rateLimits: { perHour: 3_600_000_001 } }, 'spec.rateLimits.perHour'),
  invalid('half a message', { rateLimits: { perSecond: 1.5 } }, 'spec.rateLimits.perSecond'),
  invalid('a reason although it is enabled', { disabledReason: 'Unpaid.' }, 'spec.disabledReason'),
  invalid('a reason too long', { enabled: false, disabledReason: text(501) }, 'spec.disabledReason'),
  invalid('an unknown field', { isDisabled: true }, 'spec.isDisabled'),
  validChange('another external id', { externalId: 'one' }, { externalId: 'two' }),
];
