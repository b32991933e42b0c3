const grouped = new Intl.NumberFormat('en');

/** A number with separators of thousands, such as `184,206`. */
export function count(value: number): string {
  // A formatter takes long, and most numbers of a table have nothing to separate.
  return Number.isInteger(value) && value >= 0 && value < 1000 ? String(value) : grouped.format(value);
}

/** A number with its noun, such as `1 route` and `1,204 deliveries`. `several`: the plural; default: the noun with an s. */
export function quantity(value: number, one: string, several = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : several}`;
}

/** A number with its noun, by the plural of that, such as `1 delivery` of `deliveries`. */
export function quantityOf(value: number, several: string): string {
  return quantity(value, several.replace(/ies$/, 'y').replace(/s$/, ''), several);
}

/** Bytes, such as `1.8 KB`. */
export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  const units = ['KB', 'MB', 'GB', 'TB'];
  let amount = value / 1000;
  let unit = 0;
  while (amount >= 1000 && unit < units.length - 1) {
    amount /= 1000;
    unit += 1;
  }
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${units[unit]}`;
}

/** A length of time, such as `84 ms`, `2.1 s`, `1 min 30 s`, `38 min`, `5 h 12 min` or `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1).replace('.0', '') : Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes < 10 ? withRest(`${minutes} min`, Math.floor(seconds) % 60, 's') : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return withRest(`${hours} h`, minutes % 60, 'min');
  return withRest(`${Math.floor(hours / 24)} d`, hours % 24, 'h');
}

/** When messages expire, from the seconds of a setting. */
export function expiryWords(seconds: number | null): string {
  return seconds === null ? 'messages do not expire' : `messages expire after ${duration(seconds * 1000)}`;
}

/** Minutes and seconds until a time, such as `0:42`; `now` when it has passed. */
export function countdown(ms: number): string {
  if (ms <= 0) return 'now';
  const seconds = Math.ceil(ms / 1000);
  if (seconds >= 3600) return duration(ms);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** A share of one, such as `0.4 %`. What is not all is not `100 %`. */
export function percent(share: number): string {
  const value = share * 100;
  if (value > 99 && value < 100) return `${Math.floor(value * 100) / 100} %`;
  return `${value === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} %`;
}

/** An id as lists show it: its kind and its last six characters. */
export function shortId(id: string): string {
  const at = id.indexOf('_');
  return id.length <= 14 ? id : `${id.slice(0, at + 1)}…${id.slice(-6)}`;
}

function withRest(text: string, rest: number, unit: string): string {
  return rest === 0 ? text : `${text} ${rest} ${unit}`;
}
