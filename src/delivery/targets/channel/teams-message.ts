import type { Alert, AlertType } from '../../../core/alert.ts';
import { readJson } from '../../../core/read-json.ts';
import { alertWording, cut } from './alert-wording.ts';

/** Maximum length of one text, so that the message stays below the 28 KB that Teams accepts. */
const longestText = 1000;

const colors: Record<AlertType, 'attention' | 'good'> = {
  'delivery.failed': 'attention',
  'circuit.opened': 'attention',
  'delivery.succeeded': 'good',
  'route.recovered': 'good',
  'circuit.closed': 'good',
};

/** An Adaptive Card in the envelope that workflows and incoming webhooks of Teams accept. User text is in text runs, which render no Markdown. */
export function teamsMessage(alert: Alert): object {
  const { title, summary, facts } = alertWording(alert);
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    fallbackText: title,
    body: [
      { type: 'TextBlock', text: title, weight: 'bolder', size: 'large', color: colors[alert.type], wrap: true },
      { type: 'RichTextBlock', inlines: [run(summary)] },
      ...facts.map(([label, value]) => ({ type: 'RichTextBlock', spacing: 'small', inlines: [run(`${label}: `, 'bolder'), run(value)] })),
    ],
  };
  return { type: 'message', attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }] };
}

/**
 * Why a response of 200 is a failure; null for a success. An incoming webhook returns `1`, a workflow nothing or JSON that its author defines, and
 * with any other text, such as "Webhook message delivery failed with error: …", the message is lost.
 */
export function teamsComplaint(text: string): string | null {
  const trimmed = text.trim();
  const json = readJson(trimmed);
  return trimmed === '' || json === 1 || (typeof json === 'object' && json !== null) ? null : trimmed;
}

function run(text: string, weight: 'default' | 'bolder' = 'default'): object {
  return { type: 'TextRun', text: cut(text, longestText), weight };
}
