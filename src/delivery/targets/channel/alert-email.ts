import type { Alert } from '../../../core/alert.ts';
import { htmlText } from '../../../core/html-text.ts';
import { alertWording, cut } from './alert-wording.ts';

const longestSubject = 200;

export interface EmailText {
  subject: string;
  text: string;
  html: string;
}

/** The alert as an e-mail without links; the subject has no control characters, and in a test nothing that a user has written. */
export function alertEmail(alert: Alert): EmailText {
  const wording = alertWording(alert);
  const { title } = wording;
  const summary = withoutLinks(wording.summary);
  const facts = wording.facts.map(([label, value]): [string, string] => [label, withoutLinks(value)]);
  const name = withoutLinks(alert.route.name.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' '));
  const rows = facts.map(([label, value]) => `<tr><th align="left" valign="top">${htmlText(label)}</th><td>${htmlText(value)}</td></tr>`);
  return {
    subject: alert.test ? `[Posthorn] ${title}` : cut(`[Posthorn] ${title}: ${name}`, longestSubject),
    text: [summary, '', ...facts.map(([label, value]) => `${label}: ${value}`), ''].join('\n'),
    html: `<!doctype html><html><body><p>${htmlText(summary)}</p><table cellpadding="4">${rows.join('')}</table></body></html>`,
  };
}

/** Mail programs make links of URLs, host names with `www.` and addresses: names are chosen by users, and mails come from the installation. */
function withoutLinks(text: string): string {
  return text
    .replaceAll('://', '[:]//')
    .replace(/\b(www|mailto|tel)([.:])/gi, '$1[$2]')
    .replaceAll('@', '[@]');
}
