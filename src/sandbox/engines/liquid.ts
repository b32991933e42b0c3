import {
  AssignTag,
  BreakTag,
  CaptureTag,
  CaseTag,
  CommentTag,
  ContinueTag,
  ForTag,
  filters,
  IfTag,
  InlineCommentTag,
  Liquid,
  LiquidError,
  LiquidTag,
  type Template,
  TokenKind,
  UnlessTag,
} from 'liquidjs';
import { LRUCache } from 'lru-cache';
import { withoutByteOrderMark } from '../../core/payload-text.ts';
import { largeForm, sandboxLimits } from '../jobs.ts';
import { CodeError, eventOf, type TransformEngine } from './engine.ts';
import { parseForTemplates, TemplateNumber } from './template-number.ts';

/** No files: `render`, `include` and `layout` find nothing. */
const liquid = new Liquid({
  templates: {},
  ownPropertyOnly: true,
  strictFilters: true,
  parseLimit: sandboxLimits.codeLength,
  renderLimit: sandboxLimits.computingMs,
  memoryLimit: 16 * sandboxLimits.outputBytes,
});
const largeLimits = { renderLimit: largeForm.computingMs, memoryLimit: largeForm.javascriptMemoryBytes };
for (const name of ['date', 'date_to_xmlschema', 'date_to_rfc822', 'date_to_string', 'date_to_long_string'] as const) {
  const filter = filters[name];
  if (typeof filter !== 'function') continue;
  // Other values count as milliseconds.
  liquid.registerFilter(name, function (value: unknown, ...args) {
    return filter.call(this, value instanceof TemplateNumber ? value.double : value, ...args);
  });
}
const compiled = new LRUCache<string, Template[]>({ max: 200 });

/** A template over the event; its text is the output, and nothing but white space is none. */
export const liquidEngine: TransformEngine = {
  check: async (code) => void parse(code),
  run: async ({ code, event, payload, isLarge = false }) => {
    const template = compiled.get(code) ?? parse(code);
    compiled.set(code, template);
    try {
      const text = String(liquid.renderSync(template, eventOf({ event, payload }, parseForTemplates), isLarge ? largeLimits : {}));
      return text.trim() === '' ? null : text;
    } catch (error) {
      throw codeError(error);
    }
  },
};

function parse(code: string): Template[] {
  let templates: Template[];
  try {
    templates = liquid.parse(withoutByteOrderMark(code));
  } catch (error) {
    throw codeError(error);
  }
  if (templates.every(isSilent)) throw new CodeError('the template has no output for any event');
  return templates;
}

const silentTags = [AssignTag, BreakTag, CaptureTag, CommentTag, ContinueTag, InlineCommentTag];
const containers = [CaseTag, ForTag, IfTag, LiquidTag, UnlessTag];

/** Whether a part of a template writes nothing but white space, whatever the event is. */
function isSilent(template: Template): boolean {
  const { token } = template;
  if (token.kind === TokenKind.HTML) return token.getText().trim() === '';
  if (silentTags.some((tag) => template instanceof tag)) return true;
  return containers.some((tag) => template instanceof tag) && childrenOf(template).every(isSilent);
}

function childrenOf(template: Template): Template[] {
  const children = template.children?.(false, true);
  for (let step = children?.next(); step !== undefined; step = children?.next()) if (step.done === true) return step.value;
  return [];
}

function codeError(error: unknown): CodeError {
  if (!LiquidError.is(error)) return new CodeError(error instanceof Error ? error.message : String(error));
  const [line, column] = error.token.getPosition();
  const message = error.message.replace(/,? ?(?:file:[^,]*, ?)?line:\d+(?:, ?col:\d+)?$/, '');
  return new CodeError(message, { line, column });
}
