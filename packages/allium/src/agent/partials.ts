/** The answer of a run as the object it is going to be: what `stream.partials` gives. */

import type { AgentEvent } from '../kernel/protocol/events.js';
import { PartialJson } from './partial-json.js';

/**
 * Reads the events of a stream and yields what the JSON in the answer says so far, each time there is more. Starts
 * over when a message is reset or another begins. The last value is the output of the run, if there is one.
 */
export async function* partialsOf(events: AsyncIterable<AgentEvent>): AsyncGenerator<unknown, undefined> {
  let json = new PartialJson();
  let last: unknown;
  for await (const event of events) {
    if (event.type === 'message_start' || event.type === 'message_reset') json = new PartialJson();
    else if (event.type === 'message_update' && event.delta.type === 'text') {
      json.add(event.delta.text);
      const said = json.nextValue();
      if (!said) continue;
      last = said.value;
      yield said.value;
    } else if (event.type === 'agent_end') {
      const { output } = event.result;
      if (output !== undefined && JSON.stringify(output) !== JSON.stringify(last)) yield output;
    }
  }
}
