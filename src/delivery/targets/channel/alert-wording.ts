import type { Alert, AlertType } from '../../../core/alert.ts';

/** The words of an alert, which every service shows in its own form. */
export interface AlertWording {
  /** Contains no text of a user. */
  title: string;
  /** One sentence. */
  summary: string;
  /** Label and value, in order of display. */
  facts: [label: string, value: string][];
}

const titles: Record<AlertType, string> = {
  'delivery.failed': 'Deliveries fail',
  'delivery.succeeded': 'Deliveries succeed',
  'route.recovered': 'A route has recovered',
  'circuit.opened': 'A circuit has opened',
  'circuit.closed': 'A circuit has closed',
};

export function alertWording(alert: Alert): AlertWording {
  if (alert.test) return testWording(oneLine(alert.route.name), alert.lastAt);
  const { type, count, circuitState, event, attempts, responseStatus, errorMessage, firstAt, lastAt } = alert;
  const route = oneLine(alert.route.name);
  const destination = oneLine(alert.destination.name);
  const facts: AlertWording['facts'] = [
    ['Route', `${route} (${alert.route.id})`],
    ['Destination', `${destination} (${alert.destination.id})`],
    ['Circuit', circuitState.replace('_', '-')],
  ];
  if (event !== null) facts.push(['Last event', `${event.id}, received ${event.receivedAt}`]);
  if (attempts !== null) facts.push(['Attempts', String(attempts)]);
  if (responseStatus !== null) facts.push(['Response status', String(responseStatus)]);
  const error = oneLine(errorMessage ?? '');
  if (error !== '') facts.push(['Error', error]);
  facts.push(['Time', firstAt === lastAt ? lastAt : `${firstAt} to ${lastAt}`]);
  return { title: titles[type], summary: summaryOf(type, { route, destination, count }), facts };
}

function testWording(channel: string, at: string): AlertWording {
  const summary = `This is a test of the notification channel "${channel}". Nothing has happened.`;
  return { title: 'Test alert', summary, facts: [['Time', at]] };
}

function summaryOf(type: AlertType, { route, destination, count }: { route: string; destination: string; count: number }): string {
  const messages = count === 1 ? 'A message' : `${count} messages`;
  switch (type) {
    case 'delivery.failed':
      return `${messages} of route "${route}" could not be delivered to "${destination}".`;
    case 'delivery.succeeded':
      return `${messages} of route "${route}" ${count === 1 ? 'was' : 'were'} delivered to "${destination}".`;
    case 'route.recovered':
      return `Route "${route}" delivers to "${destination}" again.`;
    case 'circuit.opened':
      return `The circuit of route "${route}" to "${destination}" is open: deliveries wait or fail over.`;
    case 'circuit.closed':
      return `The circuit of route "${route}" to "${destination}" is closed: deliveries flow again.`;
  }
}

/** Replaces line breaks and control characters, which would end a header or disguise the text. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim();
}

/** Returns at most `most` UTF-16 units, with an ellipsis if the text was cut. Cuts no character in half. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = text.slice(0, most - 1);
  return `${/[\uD800-\uDBFF]$/.test(kept) ? kept.slice(0, -1) : kept}…`;
}
