/** What was approved for the rest of a session, and a button to take it back. */
import { useEffect, useState } from 'preact/hooks';
import type { AllowanceView } from '../../src/wire.js';
import { api } from './api.js';
import { moment, pretty } from './format.js';
import { Text } from './parts.js';
import { hearRuns, info, say } from './state.js';

export function Allowances({ session }: { readonly session: string }) {
  const [allowances, setAllowances] = useState<AllowanceView['allowances']>([]);
  const [problem, setProblem] = useState<string>();
  const take = async (reading: Promise<AllowanceView>) => {
    try {
      setAllowances((await reading).allowances);
      setProblem(undefined);
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  useEffect(() => {
    const load = () => void take(api.allowances(session));
    load();
    return hearRuns({ hello: load, runs: load });
  }, [session]);
  if (allowances.length === 0 && problem === undefined) return null;
  return (
    <details class="allowances">
      <summary>{`Allowed in this session without asking: ${allowances.length}`}</summary>
      {problem && (
        <p class="bad" role="alert">
          <Text>{problem}</Text>
        </p>
      )}
      <ul>
        {allowances.map(({ id, toolName, scope, arguments: args, agent, at }) => (
          <li key={id}>
            <span>
              <b>
                <Text>{toolName}</Text>
              </b>
              {scope === 'tool' ? ' with any arguments' : ' with '}
              {scope === 'arguments' && (
                <code>
                  <Text>{pretty(args ?? '')}</Text>
                </code>
              )}
              <span class="muted">
                {agent !== undefined && (
                  <>
                    {' · sub-agent '}
                    <Text>{agent}</Text>
                  </>
                )}
                {` · since ${moment(at)}`}
              </span>
            </span>
            {info.value?.allowAnswers === true && (
              <button
                type="button"
                onClick={() =>
                  void take(api.revoke(session, id)).then(() =>
                    say('Revoked. The next such call asks again.'),
                  )
                }
              >
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}
