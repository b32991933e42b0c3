import type { z } from 'zod';
import { type TemplateKind, templateLimits, templatePattern, templateProblem, templateRule } from '../../../core/header-template.ts';
import { text } from '../../../resources/text.ts';

/** The template of a header in a body. The complaint names what is wrong with it. */
export function templateText(kind: TemplateKind): z.ZodString {
  const error = ({ input }: { input?: unknown }): string => templateProblem(String(input), kind) ?? templateRule(kind);
  return text(1, templateLimits.length)
    .regex(new RegExp(templatePattern(kind)), { error, abort: true })
    .refine((template) => templateProblem(template, kind) === null, { error });
}
