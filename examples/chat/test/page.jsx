// A bare page for the browser tests: everything that useChat knows, under ids that tests look for. `SDK` is the version it is built with.

import { useChat } from '@ai-sdk/react';
import * as ai from 'ai';
import { questionsAnswered, visibleParts } from 'allium/http/client';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

const base = `/v${SDK}`;
const id = new URLSearchParams(location.search).get('chat');
const { messages, running } = await (await fetch(`${base}/chat/${id}`)).json();

function Page() {
  const [input, setInput] = useState('');
  const chat = useChat({
    id,
    messages,
    resume: running,
    transport: new ai.DefaultChatTransport({ api: `${base}/chat` }),
    // In AI SDK 7, its own function does as well.
    sendAutomaticallyWhen:
      SDK === 7 ? ai.lastAssistantMessageIsCompleteWithApprovalResponses : questionsAnswered,
  });
  window.chat = chat;
  const answer = (approvalId, approved) => {
    if (SDK > 5) return chat.addToolApprovalResponse({ id: approvalId, approved });
    const decision = { type: approved ? 'approve' : 'reject' };
    return chat.sendMessage(undefined, { body: { answers: { [approvalId]: decision } } });
  };
  const stop = async () => {
    await fetch(`${base}/chat/${id}/stop`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
  };
  return (
    <main>
      <p id="status">{chat.status}</p>
      <p id="error">{chat.error?.message}</p>
      {chat.messages.map((message) => (
        <section key={message.id} className={message.role} data-id={message.id}>
          {visibleParts(message).map((part, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: parts only grow.
            <Part key={index} part={part} answer={answer} />
          ))}
          <button
            type="button"
            className="edit"
            onClick={() => chat.sendMessage({ text: 'Edited.', messageId: message.id })}
          >
            edit
          </button>
        </section>
      ))}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void chat.sendMessage({ text: input });
          setInput('');
        }}
      >
        <input id="input" value={input} onChange={(event) => setInput(event.target.value)} />
      </form>
      <button type="button" id="stop" onClick={stop}>
        stop
      </button>
      <button type="button" id="again" onClick={() => chat.regenerate()}>
        again
      </button>
    </main>
  );
}

function Part({ part, answer }) {
  if (part.type === 'text') return <p className="text">{part.text}</p>;
  if (part.type === 'reasoning') return <p className="reasoning">{part.text}</p>;
  if (part.type.startsWith('tool-'))
    return (
      <p className="tool" data-state={part.state}>
        {part.type} {JSON.stringify(part.input)} {JSON.stringify(part.output)} {part.errorText}
        {part.state === 'approval-requested' && <Ask id={part.approval.id} answer={answer} />}
      </p>
    );
  if (part.type === 'data-question' && SDK === 5 && !part.data.answered)
    return <Ask id={part.data.id} answer={answer} />;
  return null;
}

function Ask({ id, answer }) {
  return (
    <>
      <button type="button" className="approve" onClick={() => answer(id, true)}>
        approve
      </button>
      <button type="button" className="reject" onClick={() => answer(id, false)}>
        reject
      </button>
    </>
  );
}

createRoot(document.getElementById('root')).render(<Page />);
