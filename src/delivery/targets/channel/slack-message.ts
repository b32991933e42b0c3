import type { Alert } from '../../../core/alert.ts';
import { withoutByteOrderMark } from '../../../core/payload-text.ts';
import { readJson } from '../../../core/read-json.ts';
import { alertWording, cut } from './alert-wording.ts';

/** Maximum length of a text in a section, and of a field of one (Slack, "Block Kit reference"). */
const longestText = 3000;
const longestField = 2000;

/** Slack Block Kit for an incoming webhook: a header, a sentence, and the facts; `text` is what notifications show. */
export function slackMessage(alert: Alert): object {
  const { title, summary, facts } = alertWording(alert);
  return {
    text: cut(escaped(summary), longestText),
    blocks: [
      { type: 'header', text: { type: 'plain_text', text: title } },
      { type: 'section', text: mrkdwn(escaped(summary), longestText) },
      { type: 'section', fields: facts.map(([label, value]) => mrkdwn(`*${label}*\n${escaped(value)}`, longestField)) },
      { type: 'context', elements: [mrkdwn(`Posthorn · \`${alert.type}\``, longestText)] },
    ],
  };
}

/** Why a response of 200 is a failure; null for a success. An incoming webhook reports it by its status, a workflow by `ok` in JSON. */
export function slackComplaint(text: string): string | null {
  const { ok, error } = Object(readJson(withoutByteOrderMark(text)));
  if (ok !== false) return null;
  return typeof error === 'string' ? error : text;
}

/** `verbatim`: no channel, user or URL in it becomes a link. Cut to a length that leaves no half of an entity. */
function mrkdwn(text: string, most: number): object {
  return { type: 'mrkdwn', text: cut(text, most).replace(/&[a-z]{0,3}…$/, '…'), verbatim: true };
}

/** The three characters that Slack gives a meaning. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
