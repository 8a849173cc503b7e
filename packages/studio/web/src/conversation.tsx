/** The conversation as the user saw it. */
import type { MessageItem } from '../../src/wire.js';
import { dollars, moment, pretty, tokens } from './format.js';
import { LongText, Text } from './parts.js';
import { Flow } from './virtual.js';

export function Conversation({
  items,
  session,
  reveal,
  onChoose,
}: {
  readonly items: readonly MessageItem[];
  readonly session: string;
  readonly reveal: string | undefined;
  readonly onChoose: (item: MessageItem) => void;
}) {
  if (items.length === 0) return <p class="hint">Nothing was said yet.</p>;
  return (
    <Flow
      class="flow"
      aria-label="Conversation"
      tabIndex={0}
      items={items}
      keyOf={keyOf}
      guess={110}
      reveal={reveal}
      render={(item) => (
        <Message
          item={item}
          session={session}
          chosen={keyOf(item) === reveal}
          onChoose={() => onChoose(item)}
        />
      )}
    />
  );
}

export const keyOf = ({ id, role }: MessageItem) => `${role} ${id}`;

function who(item: MessageItem): string {
  if (item.source) return item.source;
  if (item.role === 'tool') return item.toolName ?? 'tool';
  return item.role === 'user' ? 'User' : 'Assistant';
}

function Message({
  item,
  session,
  chosen,
  onChoose,
}: {
  readonly item: MessageItem;
  readonly session: string;
  readonly chosen: boolean;
  readonly onChoose: () => void;
}) {
  return (
    <article class={`message ${item.role}${chosen ? ' chosen' : ''}${item.isError ? ' bad' : ''}`}>
      <header>
        <b>
          <Text>{who(item)}</Text>
        </b>
        {item.source && <span class="tag">middleware</span>}
        {item.role === 'tool' && <span class="muted">{item.isError ? 'failed' : 'result'}</span>}
        <span class="muted facts">
          {item.usage && `${tokens(item.usage.totalTokens)} · `}
          {item.costUsd !== undefined && `${dollars(item.costUsd)} · `}
          {moment(item.at)}
        </span>
        {item.role === 'assistant' && (
          <button type="button" class="quiet" onClick={onChoose}>
            Received
          </button>
        )}
      </header>
      {item.thinking && (
        <details class="thinking">
          <summary>Thinking</summary>
          <LongText text={item.thinking} />
        </details>
      )}
      {item.text !== '' && (
        <LongText
          text={item.text}
          cut={item.cut}
          session={session}
          id={item.id}
          code={item.role === 'tool'}
        />
      )}
      {item.media?.map((one) => (
        <p key={one} class="tag">
          <Text>{one}</Text>
        </p>
      ))}
      {item.calls?.map((call) => (
        <div key={call.id} class="call">
          <b>
            <Text>{call.name}</Text>
          </b>
          <LongText
            text={pretty(call.arguments)}
            cut={call.cut}
            session={session}
            id={item.id}
            part={argumentsOf(call.id)}
            code
          />
        </div>
      ))}
      {item.stopReason && !['stop', 'tool-calls'].includes(item.stopReason) && (
        <p class="tag bad">ended: {item.stopReason}</p>
      )}
    </article>
  );
}

function argumentsOf(callId: string) {
  return (message: Record<string, unknown>) => {
    const content = (message.content ?? []) as { id?: string; arguments?: string }[];
    return content.find(({ id }) => id === callId)?.arguments ?? '';
  };
}
