/** The answers of the mock server for the conformance suite and the wire tests. */
import { LLMock } from '@copilotkit/aimock';

/** Every wire reads its own names. */
export const usage = {
  prompt_tokens: 7,
  completion_tokens: 3,
  input_tokens: 7,
  output_tokens: 3,
  promptTokenCount: 7,
  candidatesTokenCount: 3,
};

const WEATHER = [
  { id: 'call_oslo', name: 'get_weather', arguments: '{"city":"Oslo"}' },
  { id: 'call_rome', name: 'get_weather', arguments: '{"city":"Rome"}' },
];

/** A server that greets, thinks, calls tools and fails, on every wire. */
export async function startMock(): Promise<LLMock> {
  const mock = new LLMock({ port: 0, chunkSize: 6, logLevel: 'silent' });
  mock.on({ userMessage: 'weather', hasToolResult: true }, { content: 'Rome is warmer.', usage });
  mock.on({ userMessage: 'weather' }, { toolCalls: WEATHER, usage });
  mock.onMessage('Greet me', { content: 'Good morning, and welcome to all of you.', usage });
  mock.onMessage('prime', {
    content: 'No: 13 times 17.',
    reasoning: 'Let me try 13. It fits.',
    reasoningSignature: 'sealed-by-the-maker',
    usage,
  });
  mock.onMessage('capital', { content: '{"name":"Oslo","people":700000}', usage });
  mock.onMessage('Hello.', {
    error: { message: 'Bad request.', type: 'invalid_request_error' },
    status: 400,
  });
  await mock.start();
  return mock;
}
