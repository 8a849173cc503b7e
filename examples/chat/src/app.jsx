// The chat: `useChat` of the AI SDK for messages, the client of allium/http for everything else.

import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport } from 'ai';
import { alliumClient, questionsAnswered, visibleParts } from 'allium/http/client';
import { useCallback, useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';

const client = alliumClient({ baseUrl: '/api' });

// The server has the history, so the last message will do. All of a long chat would be more than a request may have.
const transport = new DefaultChatTransport({
  api: '/api/chat',
  prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => ({
    body: { ...body, id, messages: messages.slice(-1), trigger, messageId },
  }),
  // The answer may have ended between the two requests.
  prepareReconnectToStreamRequest: ({ api, id }) => ({ api: `${api}/${id}/stream?ended=true` }),
});

function App() {
  const [id, setId] = useState(() => location.hash.slice(1) || crypto.randomUUID());
  const [history, setHistory] = useState();
  const [sessions, setSessions] = useState([]);
  const refresh = useCallback(async () => setSessions((await client.sessions({ limit: 20 })).sessions), []);
  const open = useCallback(
    async (chat) => {
      location.hash = chat;
      setHistory(undefined);
      const response = await fetch(`/api/chat/${chat}`);
      setHistory(await response.json());
      await refresh();
    },
    [refresh],
  );
  useEffect(() => void open(id), [id, open]);

  const remove = async (sessionId) => {
    await client.delete(sessionId);
    if (sessionId === id) setId(crypto.randomUUID());
    else await refresh();
  };

  return (
    <div className="app">
      <aside>
        <h1>
          <Mountain /> Guide
        </h1>
        <button type="button" className="new" onClick={() => setId(crypto.randomUUID())}>
          New conversation
        </button>
        <nav>
          {sessions.map(({ sessionId, updatedAt }) => (
            <div key={sessionId} className={sessionId === id ? 'session current' : 'session'}>
              <button type="button" onClick={() => setId(sessionId)}>
                {new Date(updatedAt).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' })}
              </button>
              <button type="button" className="remove" aria-label="Delete" onClick={() => remove(sessionId)}>
                ×
              </button>
            </div>
          ))}
        </nav>
      </aside>
      {history ? <Chat key={id} id={id} history={history} onEnd={refresh} /> : <main />}
    </div>
  );
}

function Chat({ id, history, onEnd }) {
  const { messages, sendMessage, regenerate, status, error, addToolApprovalResponse } = useChat({
    id,
    messages: history.messages,
    // After a reload in the middle of an answer, show the rest of it.
    resume: history.running,
    transport,
    sendAutomaticallyWhen: questionsAnswered,
    onFinish: onEnd,
  });
  const busy = status === 'submitted' || status === 'streaming';
  // A new message takes back open questions, so only the last message can have one.
  const last = messages.length - 1;
  const asks = messages[last]?.parts.some(({ state }) => state === 'approval-requested');
  const end = useRef(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: every new piece of text moves the end, and so does the button below.
  useEffect(() => void end.current?.scrollIntoView({ block: 'end' }), [messages, status]);

  return (
    <main>
      <div className="messages">
        {messages.length === 0 && <Welcome onAsk={(text) => sendMessage({ text })} />}
        {messages.map((message, index) => (
          <article key={message.id} className={message.role}>
            {visibleParts(message).map((part, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: parts only grow.
              <Part key={place} part={part} onAnswer={index === last ? addToolApprovalResponse : undefined} />
            ))}
            {message.role === 'assistant' && index === last && !busy && !asks && (
              <button type="button" className="again" onClick={() => regenerate()}>
                Try again
              </button>
            )}
          </article>
        ))}
        {status === 'submitted' && <p className="thinking">Thinking</p>}
        {error && <p className="error">{error.message}</p>}
        <div ref={end} />
      </div>
      {/* Closing the tab does not end a run; this does. */}
      <Composer busy={busy} onSend={(text) => sendMessage({ text })} onStop={() => client.cancel(id)} />
    </main>
  );
}

function Welcome({ onAsk }) {
  const ideas = ['Which short walks are there?', 'Book a bed in a hut', 'Be clumsy about the weather'];
  return (
    <div className="welcome">
      <Mountain />
      <h2>Where to?</h2>
      {ideas.map((idea) => (
        <button type="button" key={idea} onClick={() => onAsk(idea)}>
          {idea}
        </button>
      ))}
    </div>
  );
}

function Part({ part, onAnswer }) {
  if (part.type === 'text') return <Text text={part.text} streaming={part.state === 'streaming'} />;
  if (part.type.startsWith('tool-')) return <Tool part={part} onAnswer={onAnswer} />;
  return null;
}

const STATES = {
  'input-streaming': 'getting ready',
  'input-available': 'at work',
  'approval-requested': 'waits for you',
  'approval-responded': 'at work',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'not done',
};

function Tool({ part, onAnswer }) {
  const name = part.type.slice('tool-'.length).replaceAll('_', ' ');
  const asks = part.state === 'approval-requested' && onAnswer !== undefined;
  const state = part.state === 'approval-requested' && !asks ? 'output-denied' : part.state;
  return (
    <div className={`tool ${state}`}>
      <header>
        <span className="dot" />
        <strong>{name}</strong>
        <span className="state">{STATES[state]}</span>
      </header>
      <dl>
        {Object.entries(part.input ?? {}).map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{String(value)}</dd>
          </div>
        ))}
      </dl>
      {asks && (
        <footer>
          <button
            type="button"
            className="yes"
            onClick={() => onAnswer({ id: part.approval.id, approved: true })}
          >
            Allow
          </button>
          <button type="button" onClick={() => onAnswer({ id: part.approval.id, approved: false })}>
            Not now
          </button>
        </footer>
      )}
    </div>
  );
}

/** Paragraphs, lists, **bold**, *emphasis* and `code`: enough for this guide. */
function Text({ text, streaming }) {
  const blocks = text.trim().split(/\n\n+/);
  return (
    <div className={streaming ? 'text streaming' : 'text'}>
      {blocks.map((block, index) => {
        const lines = block.split('\n');
        const key = `${index}`;
        if (lines.every((line) => line.startsWith('- ')))
          return (
            <ul key={key}>
              {lines.map((line) => (
                <li key={line}>{inline(line.slice(2))}</li>
              ))}
            </ul>
          );
        return <p key={key}>{inline(block)}</p>;
      })}
    </div>
  );
}

function inline(text) {
  return text.split(/(\*\*[^*]+\*\*|\*[^*]+\*|`[^`]+`)/).map((piece, index) => {
    const key = `${index}`;
    if (piece.startsWith('**')) return <strong key={key}>{piece.slice(2, -2)}</strong>;
    if (piece.startsWith('*')) return <em key={key}>{piece.slice(1, -1)}</em>;
    if (piece.startsWith('`')) return <code key={key}>{piece.slice(1, -1)}</code>;
    return piece;
  });
}

function Composer({ busy, onSend, onStop }) {
  const [text, setText] = useState('');
  const send = (event) => {
    event.preventDefault();
    if (busy || text.trim() === '') return;
    onSend(text);
    setText('');
  };
  return (
    <form className="composer" onSubmit={send}>
      <input
        value={text}
        placeholder="Ask the guide"
        aria-label="Message"
        onChange={(event) => setText(event.target.value)}
      />
      {busy ? (
        <button type="button" className="stop" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button type="submit" disabled={text.trim() === ''}>
          Send
        </button>
      )}
    </form>
  );
}

function Mountain() {
  return (
    <svg viewBox="0 0 32 24" aria-hidden="true">
      <path d="M0 24 11 4l6 10 4-6 11 16z" fill="currentColor" />
      <path d="m11 4 3.4 5.7L11 12l-3.2-2.2z" fill="var(--snow)" />
    </svg>
  );
}

createRoot(document.getElementById('root')).render(<App />);
