import type { Alert } from '../../../core/alert.ts';
import { alertWording, cut } from './alert-wording.ts';

const longestSubject = 200;

export interface EmailText {
  subject: string;
  text: string;
  html: string;
}

/** The alert as an e-mail; the subject has no control characters. */
export function alertEmail(alert: Alert): EmailText {
  const { title, summary, facts } = alertWording(alert);
  const rows = facts.map(([label, value]) => `<tr><th align="left" valign="top">${escaped(label)}</th><td>${escaped(value)}</td></tr>`);
  return {
    subject: cut(`[Posthorn] ${title}: ${alert.route.name.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')}`, longestSubject),
    text: [summary, '', ...facts.map(([label, value]) => `${label}: ${value}`), ''].join('\n'),
    html: `<!doctype html><html><body><p>${escaped(summary)}</p><table cellpadding="4">${rows.join('')}</table></body></html>`,
  };
}

function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
