/** The onion: layers as rings, with what each did; rules and guards beside it. */
import { useEffect, useState } from 'preact/hooks';
import type { OnionView, RingFigures } from '../../src/wire.js';
import { api } from './api.js';
import { count, duration } from './format.js';
import { Empty, Loading, Problem, Text } from './parts.js';
import { go, info, linkTo, route, setQuery } from './state.js';

const SEAMS = ['run', 'model', 'tool'] as const;
type Seam = (typeof SEAMS)[number];
const CENTRE: Readonly<Record<Seam, string>> = { run: 'the loop', model: 'the model', tool: 'the tool' };

export function Onion() {
  const { query } = route.value;
  const [view, setView] = useState<OnionView>();
  const [error, setError] = useState<string>();
  const [picked, setSeam] = useState<Seam>();
  const [chosen, setChosen] = useState<string>();
  const last = query.last ?? '50';
  const load = () =>
    api.onion(query.session ? { session: query.session, run: query.run } : { last, agent: query.agent }).then(
      (one) => {
        setView(one);
        setError(undefined);
      },
      (problem) => setError(problem.message),
    );
  useEffect(() => {
    void load();
  }, [query.session, query.run, last, query.agent]);
  if (error) return <Problem error={error} retry={load} />;
  if (!view) return <Loading what="Peeling the onion…" />;
  if (view.plan.length === 0 && !view.explanation)
    return (
      <Empty title="No onion yet">
        <p>{info.value?.problem ?? 'No agent is configured, and no run has been read.'}</p>
      </Empty>
    );
  const figures = new Map(view.figures.map((one) => [one.name, one]));
  const seam = picked ?? firstSeam(view);
  return (
    <section class="screen scrolls onion">
      <header class="onion-head">
        <h1>{view.agent ? <Text>{`The onion of ${view.agent}`}</Text> : 'The onion'}</h1>
        {query.session ? (
          <span class="actions">
            <span class="tag">this run</span>
            <a href={linkTo('run', { session: query.session, run: query.run })}>to the run</a>
            <button type="button" class="quiet" onClick={() => go('onion')}>
              last runs instead
            </button>
          </span>
        ) : (
          <label class="check">
            Last
            <select
              value={last}
              onChange={(event) => setQuery({ ...query, last: event.currentTarget.value })}
            >
              {['10', '50', '200'].map((n) => (
                <option key={n} value={n}>
                  {n}
                </option>
              ))}
            </select>
            sessions
          </label>
        )}
      </header>
      <p class="muted">
        {view.traced > 0
          ? `Figures of ${count(view.traced, 'traced run')}${view.runs > view.traced ? ` out of ${view.runs}` : ''}. Times are each middleware’s own, without what ran inside it.`
          : `${view.runs === 0 ? 'No run was read' : `None of ${count(view.runs, 'run')} was traced`}, so there are no figures. Give the agent trace: 'changes'.`}
      </p>
      {view.explanation ? (
        <div class="onion-body">
          <div class="onion-picture">
            <div class="segments" role="tablist" aria-label="Seam">
              {SEAMS.map((one) => (
                <button
                  key={one}
                  type="button"
                  role="tab"
                  aria-selected={seam === one}
                  onClick={() => setSeam(one)}
                >
                  {one} · {view.explanation!.layers[one].length}
                </button>
              ))}
            </div>
            <RingsOf view={view} seam={seam} figures={figures} chosen={chosen} choose={setChosen} />
          </div>
          <Layers view={view} seam={seam} figures={figures} chosen={chosen} choose={setChosen} />
        </div>
      ) : (
        <Plain plan={view.plan} figures={figures} />
      )}
      {view.explanation && <Rules view={view} figures={figures} />}
    </section>
  );
}

/** The model, or the first seam that has layers if nothing wraps the model. */
function firstSeam({ explanation }: OnionView): Seam {
  const wrapped = (one: Seam) => explanation !== undefined && explanation.layers[one].length > 0;
  return wrapped('model') ? 'model' : (SEAMS.find(wrapped) ?? 'model');
}

interface Shown {
  readonly view: OnionView;
  readonly seam: Seam;
  readonly figures: ReadonlyMap<string, RingFigures>;
  readonly chosen: string | undefined;
  readonly choose: (name: string | undefined) => void;
}

/** Rings from the outside in. The width of a ring is the same for all; its colour tells how much of the time it took. */
function RingsOf({ view, seam, figures, chosen, choose }: Shown) {
  const layers = view.explanation!.layers[seam];
  const hazards = view.explanation!.hazards;
  const most = Math.max(1e-9, ...layers.map(({ name }) => figures.get(name)?.ms ?? 0));
  const step = Math.min(40, 150 / Math.max(1, layers.length));
  const label = `${seam} layers from the outside in: ${layers.map(({ name }) => name).join(', ') || 'none'}`;
  return (
    <svg class="picture" viewBox="0 0 400 400" role="img" aria-label={label}>
      {layers.map(({ name }, index) => {
        const radius = 190 - index * step;
        const figure = figures.get(name);
        const share = (figure?.ms ?? 0) / most;
        const warned = hazards.some(({ between }) => between.includes(name));
        return (
          // biome-ignore lint/a11y/noStaticElementInteractions: the list beside it has the same as buttons.
          <g
            key={name}
            class={`ring${chosen === name ? ' chosen' : ''}${warned ? ' warned' : ''}${figure && figure.blocks > 0 ? ' blocks' : ''}`}
            onMouseEnter={() => choose(name)}
            onMouseLeave={() => choose(undefined)}
          >
            <circle cx="200" cy="200" r={radius} style={{ fillOpacity: 0.06 + share * 0.3 }} />
            {step >= 18 && (
              <text x="200" y={200 - radius + step / 2 + 5} text-anchor="middle">
                <Text>{name}</Text>
              </text>
            )}
            {warned && <circle class="hazard" cx="200" cy={200 + radius - step / 2} r="5" />}
          </g>
        );
      })}
      <circle class="core" cx="200" cy="200" r={Math.max(34, 190 - layers.length * step)} />
      <text x="200" y="205" text-anchor="middle">
        {CENTRE[seam]}
      </text>
    </svg>
  );
}

function Layers({ view, seam, figures, chosen, choose }: Shown) {
  const layers = view.explanation!.layers[seam];
  if (layers.length === 0)
    return <p class="muted">No layer wraps {CENTRE[seam]}. Rules and guards below still see it.</p>;
  return (
    <ol class="layers" aria-label={`${seam} layers, from the outside in`}>
      {layers.map(({ name, hooks }) => (
        <li key={name} class={chosen === name ? 'chosen' : ''}>
          <button
            type="button"
            class="layer"
            onMouseEnter={() => choose(name)}
            onMouseLeave={() => choose(undefined)}
            onFocus={() => choose(name)}
            onBlur={() => choose(undefined)}
          >
            <b>
              <Text>{name}</Text>
            </b>
            <span class="muted">{hooks.join(', ')}</span>
            <Figures of={figures.get(name)} />
          </button>
          <Hazards view={view} name={name} />
        </li>
      ))}
    </ol>
  );
}

function Figures({ of }: { readonly of: RingFigures | undefined }) {
  if (!of) return <span class="figures muted">no figures</span>;
  return (
    <span class="figures">
      {count(of.calls, 'call')} · {duration(of.ms)}
      {of.changes > 0 && ` · ${count(of.changes, 'change')}`}
      {of.asks > 0 && ` · ${count(of.asks, 'question')}`}
      {of.blocks > 0 && <b class="bad"> · {count(of.blocks, 'block')}</b>}
    </span>
  );
}

function Hazards({ view, name }: { readonly view: OnionView; readonly name: string }) {
  return (
    <>
      {view
        .explanation!.hazards.filter(({ between }) => between.includes(name))
        .map(({ id, message, fix }) => (
          <p key={id} class="hazard-note">
            <b>{id}</b> <Text>{message}</Text> <span class="muted">{fix}</span>
          </p>
        ))}
    </>
  );
}

function Rules({
  view,
  figures,
}: {
  readonly view: OnionView;
  readonly figures: ReadonlyMap<string, RingFigures>;
}) {
  const { rules, guards, hazards, middleware } = view.explanation!;
  const layered = new Set(SEAMS.flatMap((seam) => view.explanation!.layers[seam].map(({ name }) => name)));
  const rest = middleware.filter(({ name }) => !layered.has(name));
  const loose = hazards.filter(({ between }) => !between.some((name) => layered.has(name)));
  const chip = (name: string, point?: string) => {
    const figure = figures.get(name);
    const all = figure ? figure.changes + figure.blocks + figure.asks : 0;
    const acts = point === undefined ? all : (figure?.verdicts[point] ?? 0);
    return (
      <span
        key={name}
        class="tag accent"
        title={figure ? `${count(figure.calls, 'call')}, ${duration(figure.ms)}` : undefined}
      >
        <Text>{name}</Text>
        {acts > 0 && ` ${acts}`}
      </span>
    );
  };
  const chain = (names: readonly string[], point?: string) =>
    names.flatMap((name, index) => (index === 0 ? [chip(name, point)] : [' → ', chip(name, point)]));
  return (
    <div class="rules">
      <section>
        <h2>Rules, in order</h2>
        {rules.length === 0 && <p class="muted">No middleware decides anything.</p>}
        <dl>
          {rules.map(({ hook, rule, members, shadowed }) => (
            <div key={hook}>
              <dt>
                {hook} <span class="muted">{rule}</span>
              </dt>
              <dd>
                {chain(members.filter((name) => !shadowed.includes(name)))}
                {shadowed.length > 0 && <span class="bad"> never runs: {shadowed.join(', ')}</span>}
              </dd>
            </div>
          ))}
        </dl>
      </section>
      <section>
        <h2>Guard points</h2>
        {guards.length === 0 && <p class="muted">No guard judges anything.</p>}
        <dl>
          {guards.map(({ point, members }) => (
            <div key={point}>
              <dt>{point}</dt>
              <dd>{chain(members, point)}</dd>
            </div>
          ))}
        </dl>
      </section>
      <section>
        <h2>Without a layer</h2>
        <ul class="plain">
          {rest.map(({ name }) => (
            <li key={name}>
              <b>
                <Text>{name}</Text>
              </b>{' '}
              <Figures of={figures.get(name)} />
              <Hazards view={view} name={name} />
            </li>
          ))}
          {rest.length === 0 && <li class="muted">Every middleware has one.</li>}
        </ul>
        {loose.some(({ between }) => !between.some((name) => rest.some((one) => one.name === name))) &&
          loose.map(({ id, message, fix }) => (
            <p key={id} class="hazard-note">
              <b>{id}</b> <Text>{message}</Text> <span class="muted">{fix}</span>
            </p>
          ))}
      </section>
    </div>
  );
}

/** A plan of which only the names are known, because no agent here has it. */
function Plain({
  plan,
  figures,
}: {
  readonly plan: readonly string[];
  readonly figures: ReadonlyMap<string, RingFigures>;
}) {
  return (
    <>
      <p class="muted">
        No agent with this plan is configured here, so only the order of its middleware is known.
      </p>
      <ol class="layers">
        {plan.map((name) => (
          <li key={name}>
            <div class="layer">
              <b>
                <Text>{name}</Text>
              </b>
              <Figures of={figures.get(name)} />
            </div>
          </li>
        ))}
      </ol>
    </>
  );
}
