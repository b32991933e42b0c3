import type { Alert, AlertType } from '../../../core/alert.ts';
import { alertWording, cut } from './alert-wording.ts';

/** Discord, "Embed limits": title 256, description 4096, value 1024, and 6000 characters in all. */
const longestDescription = 2048;
const longestValue = 600;

const colors: Record<AlertType, number> = {
  'delivery.failed': 0xd9_2d_20,
  'circuit.opened': 0xd9_2d_20,
  'delivery.succeeded': 0x12_b7_6a,
  'route.recovered': 0x12_b7_6a,
  'circuit.closed': 0x12_b7_6a,
};

/** One embed; mentions in names have no effect. */
export function discordMessage(alert: Alert): object {
  const { title, summary, facts } = alertWording(alert);
  return {
    allowed_mentions: { parse: [] },
    embeds: [
      {
        title,
        description: markdown(summary, longestDescription),
        color: colors[alert.type],
        timestamp: alert.lastAt,
        fields: facts.map(([name, value]) => ({ name, value: markdown(value, longestValue), inline: value.length < 40 })),
        footer: { text: `Posthorn · ${alert.type}` },
      },
    ],
  };
}

/** Cut, and with its punctuation escaped, so that it shows as it is. */
function markdown(text: string, most: number): string {
  const escaped = text.replace(/[\\*_~`|>#[\]()<@-]/g, '\\$&');
  return cut(escaped, most).replace(/\\…$/, '…');
}
