export interface ServerEvent {
  event: string;
  id: string | null;
  data: string;
}

/** Takes text as it arrives, in pieces of any size, and gives events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export function eventSplitter(onEvent: (event: ServerEvent) => void): (text: string) => void {
  let rest = '';
  return (text) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event: ServerEvent = { event: 'message', id: null, data: '' };
      const data: string[] = [];
      for (const line of block.split('\n')) {
        const colon = line.indexOf(':');
        const [field, value] = colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
        if (field === 'event') event.event = value;
        else if (field === 'id') event.id = value;
        else if (field === 'data') data.push(value);
      }
      event.data = data.join('\n');
      if (event.id !== null || event.data !== '') onEvent(event);
    }
  };
}
